"""Measure how right gpudiag is on the labelled corpus, and write the pages that follow from it or from the sources.

The reference pages (`generate_docs`) are written here rather than in `docs/`: that folder holds no Python, and one
package holds every program that writes a committed page.
"""
