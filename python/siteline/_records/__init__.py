"""The classes of :mod:`siteline.types`, one module for each subject."""
