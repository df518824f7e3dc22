"""Each fault that was seen in the field, and the tests that stand for it.

The number is that of its folder in ``tests/fixtures/cases``, where it needs recorded output.  A
test that is renamed or dropped must be replaced here: no fault may lose its test unseen.
"""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
RECORDED = TESTS / "fixtures" / "cases"
NOT_YET = {13}  # client/server output is refused until several hosts can be measured

FAULTS: dict[int, tuple[str, tuple[str, ...]]] = {
    1: (
        "text around fio's JSON, or several documents",
        (
            "fio/test_output.py::test_an_error_before_the_document_is_kept_as_an_error",
            "fio/test_output.py::test_the_last_of_several_cumulative_documents_is_the_result",
            "fio/test_output.py::test_text_on_the_lines_of_the_document_does_not_lose_it",
            "fio/test_output.py::test_garbage_around_a_document_does_not_change_the_result",
        ),
    ),
    2: (
        "reads of data that was never written",
        (
            "measure/test_cases.py::test_reads_that_never_reached_the_device_are_invalid",
            "measure/test_cases.py::test_a_file_written_in_part_is_invalid_as_well",
            "host/test_extents.py::test_a_partly_written_file_tells_how_much_is_missing",
            "cli/test_run.py::test_a_sparse_file_is_refused_with_the_way_out",
            "cli/test_run.py::test_a_stopped_run_is_resumed_to_its_end",
            "cli/test_run_on_loop_device.py::test_a_device_that_nobody_filled_is_doubted",
        ),
    ),
    3: (
        "a mounted disk that fio would write",
        (
            "host/test_guard_on_loop_devices.py::"
            "test_the_disk_of_a_mounted_partition_and_the_partition_are_refused",
            "host/test_guard_on_loop_devices.py::"
            "test_a_mounted_device_and_a_symlink_to_it_are_refused",
            "host/test_guard_on_loop_devices.py::test_another_node_of_a_mounted_disk_is_refused",
        ),
    ),
    4: (
        "nothing ran, exit code 0",
        (
            "measure/test_cases.py::test_a_refusal_with_exit_code_zero_is_a_failed_cell",
            "measure/test_cases.py::test_an_offset_past_the_end_is_a_failed_cell",
            "measure/test_cases.py::test_idle_jobs_beside_busy_ones_fail_the_cell_and_are_named",
            "measure/test_checks.py::"
            "test_one_job_of_several_that_never_wrote_is_a_failure_unless_by_chance",
        ),
    ),
    5: (
        "workers that go on writing after a time-out",
        (
            "fio/test_launch.py::test_nobody_goes_on_writing_after_a_time_out",
            "fio/test_launch.py::test_workers_of_a_killed_front_end_are_ended_too",
            "fio/test_launch.py::test_a_program_that_stands_still_is_killed_at_its_time_out",
            "cli/test_run.py::test_a_killed_kvbench_takes_fio_with_it_and_loses_one_cell",
        ),
    ),
    6: (
        "KiB means 1000 to fio",
        (
            "test_units.py::test_ki_is_1024_and_k_is_1000",
            "test_units.py::test_what_is_ambiguous_or_no_size_is_refused",
            "fio/test_jobfile.py::test_every_size_is_a_plain_number_of_bytes",
            "fio/test_jobfile_with_fio.py::test_the_unit_of_every_size_is_bytes_in_fios_own_eyes",
        ),
    ),
    7: (
        "offsets that reach only a part of a huge target",
        ("fio/test_jobfile_with_fio.py::test_offsets_reach_every_part_of_a_huge_target",),
    ),
    8: (
        "percentiles of jobs that were averaged",
        (
            "measure/test_cases.py::test_percentiles_of_jobs_are_merged_and_not_averaged",
            "measure/test_cases.py::test_a_job_without_bins_leaves_no_percentile_of_all",
            "stats/test_histogram.py::test_a_merged_quantile_lies_between_those_of_the_parts",
        ),
    ),
    9: (
        "0 that means not measured",
        (
            "measure/test_cases.py::test_what_was_not_measured_is_none_with_a_reason",
            "measure/test_cases.py::test_a_latency_that_was_not_measured_is_never_zero",
            "fio/test_output.py::test_an_impossible_latency_counts_as_not_measured",
            "fio/test_output.py::test_an_impossible_count_or_rate_is_an_error",
        ),
    ),
    10: (
        "units and keys that differ between versions",
        (
            "fio/test_output.py::test_the_same_run_has_the_same_numbers_in_every_version",
            "fio/test_output.py::test_versions_between_have_the_same_numbers_too",
            "fio/test_output.py::test_fio_3_42_parses_to_the_same_model",
        ),
    ),
    11: (
        "a colon that splits a file's name",
        (
            "fio/test_jobfile_with_fio.py::test_an_odd_name_leads_to_this_one_file",
            "fio/test_jobfile_with_fio.py::test_a_folder_named_after_a_time_is_no_list_of_files",
            "cli/test_run.py::test_a_file_of_the_user_is_only_read",
            "test_target.py::test_nothing_is_made_where_fio_could_not_be_led",
        ),
    ),
    14: (
        "an interrupted run that looks complete",
        (
            "measure/test_cases.py::test_an_interrupted_cell_is_failed_and_keeps_its_numbers",
            "measure/test_cases.py::test_no_document_or_half_of_one_is_a_failed_cell",
            "cli/test_run.py::test_stopping_ends_fio_and_keeps_what_was_measured",
            "fio/test_output.py::test_a_cut_at_any_byte_is_an_error",
        ),
    ),
    15: (
        "yesterday's output read as today's",
        (
            "fio/test_launch.py::test_an_old_result_cannot_pass_for_a_new_one",
            "measure/test_cases.py::test_a_good_output_of_another_launch_is_invalid",
            "measure/test_cases.py::test_help_text_is_a_failed_cell",
        ),
    ),
    16: (
        "failed I/Os counted as IOPS",
        (
            "measure/test_cases.py::test_failed_ios_do_not_count_as_iops",
            "measure/test_cases.py::test_a_stop_at_the_first_error_is_a_failed_cell",
            "cli/test_run_on_loop_device.py::test_a_device_with_errors_gives_no_number",
        ),
    ),
    17: (
        "different sections melted into one row",
        (
            "measure/test_cases.py::test_a_row_of_two_sections_does_not_pass_for_one",
            "measure/test_cases.py::test_two_reading_sections_in_one_row_do_not_pass_for_either",
            "fio/test_jobfile_with_fio.py::test_rows_of_the_output_tell_streams_apart_by_group",
        ),
    ),
    18: (
        "job options that are missing or of another job",
        (
            "fio/test_output.py::test_options_are_those_of_global_and_of_the_job",
            "fio/test_output.py::test_jobs_of_one_name_stay_apart",
            "measure/test_cases.py::"
            "test_sections_are_told_apart_by_group_where_their_names_are_equal",
            "measure/test_cases.py::test_sections_that_share_a_group_do_not_pass_for_two_streams",
        ),
    ),
    19: (
        "a job that ended long before its time",
        (
            "measure/test_cases.py::test_a_job_that_ended_early_is_invalid_whatever_was_asked",
            "measure/test_cases.py::test_one_io_is_no_percentile",
            "measure/test_checks.py::test_a_runtime_too_short_or_too_long_is_invalid",
        ),
    ),
    20: (
        "a steady state over a window that was never full",
        (
            "stats/test_steady.py::test_a_window_that_fio_padded_with_zeros_is_not_full",
            "stats/test_steady.py::"
            "test_what_fio_called_attained_is_judged_by_the_limits_of_the_specification",
            "stats/test_steady.py::test_a_falling_load_has_a_negative_slope",
            "prepare/test_rounds.py::test_a_round_without_a_value_breaks_the_row",
        ),
    ),
    21: (
        "completion latencies of minutes in a run of seconds",
        (
            "measure/test_cases.py::test_an_impossible_completion_latency_is_invalid",
            "measure/test_cases.py::"
            "test_an_impossible_latency_of_one_job_is_found_in_either_direction",
            "measure/test_cases.py::"
            "test_an_impossible_latency_is_found_without_the_whole_latency_beside_it",
        ),
    ),
    22: (
        "io_uring refused",
        (
            "fio/test_probe.py::test_a_refused_io_uring_is_explained_and_not_replaced",
            "fio/test_probe.py::test_too_little_locked_memory_is_explained",
            "fio/test_probe.py::test_an_engine_that_is_not_built_in_is_told",
        ),
    ),
    23: (
        "a queue depth that was not reached",
        (
            "measure/test_cases.py::test_a_sync_engine_that_ignores_the_depth_is_invalid",
            "measure/test_cases.py::test_a_full_queue_that_blocks_in_submission_is_invalid",
            "measure/test_checks.py::test_one_job_of_several_with_a_queue_of_one_is_invalid",
            "measure/test_checks.py::test_a_queue_that_was_not_filled_is_invalid",
        ),
    ),
    24: (
        "JSON of nvme-cli and smartctl in another shape or unit",
        (
            "host/test_tool_json.py::test_every_shape_of_the_list_names_the_same_namespace",
            "host/test_tool_json.py::test_a_serial_that_is_not_listed_is_unknown_with_a_reason",
            "host/test_tool_json.py::test_the_controller_of_nvme0n1_may_be_nvme1",
            "host/test_tool_json.py::test_no_device_is_a_sentence_and_an_empty_list_is_empty",
            "host/test_tool_json.py::test_kelvin_and_celsius_are_the_same_temperature",
            "host/test_tool_json.py::"
            "test_counters_are_strings_with_separators_or_larger_than_64_bits",
            "host/test_tool_json.py::test_missing_keys_are_unknown_and_never_zero",
            "host/test_tool_json.py::test_a_throttled_run_shows_in_the_drive_s_counters",
            "host/test_tool_json.py::test_the_exit_bits_of_smartctl_are_no_data_or_a_note",
        ),
    ),
    25: (
        "a gate that alarms on a device compared with itself",
        (
            "compare/test_judge.py::"
            "test_a_device_against_itself_alarms_in_at_most_two_of_forty_reports",
            "compare/test_judge.py::test_all_twenty_real_regressions_are_found_and_named",
            "compare/test_judge.py::"
            "test_thirteen_metrics_of_five_repetitions_can_never_alarm_and_say_so",
            "compare/test_judge.py::test_a_drifting_baseline_is_refused_with_the_drift",
            "gate/test_decide.py::test_no_archive_passes_with_a_required_number_missing",
            "gate/test_planted.py::test_the_same_speed_again_is_no_regression",
        ),
    ),
}


@pytest.mark.parametrize("number", FAULTS)
def test_every_fault_has_its_tests(number: int) -> None:
    meaning, tests = FAULTS[number]
    assert tests, meaning
    for name in tests:
        file, _, test = name.partition("::")
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert test in defined, f"{meaning}: {name} is not there"


def test_every_recorded_fault_is_in_the_table() -> None:
    numbers = {int(folder.name[:2]) for folder in RECORDED.iterdir()}
    assert numbers - NOT_YET <= set(FAULTS)
