"""Times of the steps of a request -> how long the GPU would have waited for them.  Pure.

Layer by layer: step i is computed when it is loaded and step i - 1 was computed.  Loads follow one
another as fast as they were measured; with a bounded prefetch, step i is not loaded before the
computation of step i - prefetch has begun, because its buffer is in use until then.
"""

import numpy as np
from numpy.typing import NDArray


def stalls_ns(
    steps_ns: NDArray[np.int64], compute_ns: float, prefetch_steps: int | None
) -> NDArray[np.float64]:
    """Return the stall of each request: its time from first load to last result, less computing.

    Args:
        steps_ns: shape (requests, steps), the time that each load took.
        compute_ns: of one step.
        prefetch_steps: loads that may be ahead of the computation; None is all.

    Returns:
        Shape (requests,).  The first load is part of it: nothing can be computed meanwhile.
    """
    requests, steps = steps_ns.shape
    loaded = np.zeros(requests)
    computed = np.zeros(requests)
    started = np.zeros((requests, steps))
    for step in range(steps):
        begin = loaded
        if prefetch_steps is not None and step >= prefetch_steps:
            begin = np.maximum(begin, started[:, step - prefetch_steps])
        loaded = begin + steps_ns[:, step]
        started[:, step] = np.maximum(loaded, computed)
        computed = started[:, step] + compute_ns
    stalls: NDArray[np.float64] = computed - steps * compute_ns
    return stalls
