"""The member names of the service's replies, for a service that names them differently.

>>> siteline.shapes.Shape(array="items").array
'items'
"""

from siteline._core import Shape
from siteline._discovery_shape import DiscoveryShape

__all__ = ["DiscoveryShape", "Shape"]
