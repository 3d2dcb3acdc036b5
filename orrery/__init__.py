"""The console command ``orrery``, in front of the five packages."""

__version__ = "0.1.0"
