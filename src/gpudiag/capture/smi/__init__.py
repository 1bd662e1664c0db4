"""The state of the GPU beside a recording: clocks, power, heat and memory, which no timeline shows."""
