"""The probe of the law by which a world model continues orbits."""
