"""Where :meth:`siteline.Client.sync` can write beside a :class:`siteline.Store`."""

from siteline.targets._protocols import AsyncStoreTarget, StoreTarget

__all__ = ["AsyncStoreTarget", "StoreTarget"]
