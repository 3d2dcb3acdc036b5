"""The run layer of every package: artefacts, cells, folders, executors, tables, pages."""

from orbits.runs import plugins

plugins.restore()  # a worker process has the plug-ins of the command that started it
