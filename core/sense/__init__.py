"""Sensors: each reads one part of the system and puts frozen observations into the supervisor's inbox."""
