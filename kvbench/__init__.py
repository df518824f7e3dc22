"""kvbench: measure an SSD as a tier of the KV cache of LLM serving.

The rooms, top to bottom; a room imports only from rooms above it (``tests/test_rooms.py``)::

    errors    what can go wrong for a user; one exit code per class
    units     parse and format sizes, times and rates; the only home of 1024, 1000 and 1e9
    metrics   one table: name, unit, which direction is better, I/Os needed, meaning
    document  a TOML file -> its values, and the words in which a wrong one is refused
    stats     arithmetic on arrays; knows nothing of kvbench
    kv        model geometry -> bytes; GPU prefill estimates; reload or recompute
    workload  data file -> Workload
    plan      workloads x target x repetitions -> ordered cells
    host      read the machine; decide whether a target may be touched
    fio       the only wall to fio: job text, launch, output, probe
    target    make, fill and prove the file under test
    store     results/ on disk
    measure   raw records -> numbers with their doubts
    integrity  is what was written still there: what a target must hold, and what it holds
    session   the only loop with effects: guard, launch, store, next cell
    prepare   purge, fill and settle a device; a record of its state
    compare   two or more measured runs -> what differs, and what may be concluded
    gate      a comparison x a policy -> one verdict and an exit code
    report    archive -> text, figures, HTML, CSV
    cli       main and one module per verb
"""

__version__ = "0.1.0"
