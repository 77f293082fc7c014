#!/bin/bash
# Train, and keep a copy of the output.
export OMP_NUM_THREADS=1
mkdir -p logs
python -u train.py --out checkpoints --max-steps 48 --save-interval 10 "$@" 2>&1 | tee -a logs/train.log
