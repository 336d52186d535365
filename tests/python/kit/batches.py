"""Targets that get several pages of a chain as one."""


def with_batch(target, batch):
    """Returns the target with the attribute `batch`; `None` leaves it as it is."""
    if batch is not None:
        target.batch = batch
    return target
