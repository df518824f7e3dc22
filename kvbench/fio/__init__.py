"""The only wall to fio: job text, launch, output, probe."""
