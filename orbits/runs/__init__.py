"""What every package runs and reports with: artefacts, cells, folders, executors, tables, pages."""
