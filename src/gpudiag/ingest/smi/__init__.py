"""Reader of nvidia-smi's logs: `nvidia-smi --query-gpu=… --format=csv` and `nvidia-smi dmon`."""
