"""By which law world models of several worlds continue the orbits of all of them: one study."""
