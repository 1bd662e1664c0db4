"""Loops: where iterations begin and end, by annotation or by repetition."""
