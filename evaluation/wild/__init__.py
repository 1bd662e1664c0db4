"""The wild corpus: programs as people write them, recorded without annotations, and how gpudiag does on them."""
