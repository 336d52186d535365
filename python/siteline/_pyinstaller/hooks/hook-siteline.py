"""Adds siteline's data files and package metadata to an application.

The modules need no hook, because ``siteline._by_name`` imports them.
"""

from PyInstaller.utils.hooks import collect_data_files, copy_metadata

datas = collect_data_files("siteline") + copy_metadata("siteline")
