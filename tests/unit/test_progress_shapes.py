"""What trainers print, one line each in our own numbers, and what is read from it."""

import pytest

from trainwatch.core.judge.progress.log_progress import progress_of
from trainwatch.core.judge.text.line_shapes import SHAPES, shapes_of, user_shapes
from trainwatch.core.model.progress import Progress

NAMES = {
    "step": "step",
    "of": "total_steps",
    "epoch": "epoch",
    "epochs": "total_epochs",
    "loss": "loss",
    "lr": "lr",
    "s": "sec_per_step",
}

TRAINING = [
    ("on an epoch thing:  40%|████      | 40/100 [00:10<00:15,  4.00it/s, loss=0.5]", {"step": 40, "of": 100, "loss": 0.5, "s": 0.25}),
    ("t | progress: 90/900, train/total_loss: 0.25, epoch: 2, num_updates: 90, lr: 0.001", {"step": 90, "of": 900, "epoch": 2, "loss": 0.25, "lr": 1e-3}),
    ("Epoch: [3/9][90/900]  Time: 0.250 (0.30)  Loss: 1.5 (1.6)", {"step": 90, "of": 900, "epoch": 3, "epochs": 9, "loss": 1.5, "s": 0.25}),
    ("第 4/20 轮 训练损失: 0.5 学习率: 0.002", {"epoch": 4, "epochs": 20, "loss": 0.5, "lr": 0.002}),
    ("エポック 2/9 損失: 0.75", {"epoch": 2, "epochs": 9, "loss": 0.75}),
    ("ÉPOCA 2/9\nTrain Loss: 0.5", {"epoch": 2, "epochs": 9, "loss": 0.5}),
    ("2024-01-01 DEBUG TRAIN Batch 3/900 loss 8.5 loss_att 9.0 lr 0.0002 rank 0", {"step": 900, "epoch": 3, "loss": 8.5, "lr": 2e-4}),
    ("INFO:root:Epoch[4] Batch [20-40]\tSpeed: 900.10 samples/sec\taccuracy=0.5", {"step": 40, "epoch": 4}),
    ("loss: 1.500000  [ 3200/48000]", {"step": 3200, "of": 48000, "loss": 1.5}),
    ("[xla:0](700) Loss=1.5 Rate=99.0", {"step": 700, "loss": 1.5}),
    ("[800] loss: 0.25", {"step": 800, "loss": 0.25}),
    ("step   40/9000 | loss 5.000000 | lr 1.00e-04 | 250.00 ms | 99 tok/s", {"step": 40, "of": 9000, "loss": 5.0, "lr": 1e-4, "s": 0.25}),
    ("Iter 70: Train loss 2.5, Learning Rate 1.000e-05, It/sec 0.500, Tokens/sec 90.1", {"step": 70, "loss": 2.5, "lr": 1e-5, "s": 2.0}),
    ("Epoch 2/5 | Batch 30/90 | Batch Loss: 0.7500 | Time/Batch: 0.250s", {"step": 30, "of": 90, "epoch": 2, "epochs": 5, "loss": 0.75, "s": 0.25}),
    ("[train] Epoch: 2/5 | Batch: 3/9 | LR: 0.00200000 | Batch Loss: 0.75000000 | RAM Usage: 10.0/60.0:  33%|███▎      | 3/9 [00:03<00:06,  1.00it/s]", {"step": 3, "of": 9, "epoch": 2, "epochs": 5, "loss": 0.75, "lr": 0.002, "s": 1.0}),
    ("[2/50] Loss_D: 1.0000 Loss_G: 0.5:  40%|████      | 40/100 [00:10<00:15,  4.00it/s]", {"step": 40, "of": 100, "epoch": 2, "epochs": 50, "s": 0.25}),
    ("Epoch 3, global step 900, data_time: 0.0200, time: 1.5000, rgb: 0.1, depth: 0.2, normal: 0.3", {"step": 900, "epoch": 3, "s": 1.5}),
    ("      7/90      9.5G      1.25      0.75      1.5        80        640", {"epoch": 7, "epochs": 90}),
    ("| grad_norm | 0.2 |\n| loss      | 0.125 |\n| step      | 2.5e+03 |", {"step": 2500, "loss": 0.125}),
    ("90:\tlearn: 0.25\ttest: 0.5\tbest: 0.5 (90)", {"step": 90, "loss": 0.25}),
    ("===> Epoch[2](30/90): Loss 1.5000", {"step": 30, "of": 90, "epoch": 2, "loss": 1.5}),
    ("eta: 1:00:00  epoch/iter: 2/399  total_loss: 4.5", {"step": 399, "epoch": 2, "loss": 4.5}),
    ("\titers: 90, epoch: 2 | loss: 0.25\n\tspeed: 0.0500s/iter; left time: 9.0s", {"step": 90, "epoch": 2, "loss": 0.25, "s": 0.05}),
    ("  Epoch 2/30 [12.5s] train loss 0.5 (9.5s)", {"epoch": 2, "epochs": 30, "loss": 0.5}),
    ("steps:  12%|█▏        | 1230/10260 [51:15<6:16:15,  2.50s/it, avr_loss=0.0912]", {"step": 1230, "of": 10260, "loss": 0.0912, "s": 2.5}),
    ("steps:   3% 77/2500 [01:10<36:48,  1.10it/s, loss=0.21]", {"step": 77, "of": 2500, "loss": 0.21, "s": 1 / 1.1}),
    ("epoch 3/8\nsteps:  50%|█████     | 40/80 [01:00<01:00,  1.50s/it, avr_loss=0.5]", {"step": 40, "of": 80, "epoch": 3, "epochs": 8, "loss": 0.5, "s": 1.5}),
    ("Epoch 2:  10%|█         | 30/300 [00:10<01:30,  3.00it/s, v_num=1, train_loss=1.5]", {"step": 30, "of": 300, "epoch": 2, "loss": 1.5, "s": 1 / 3}),
    ("Epoch 4: 100%|█████████▉| 81/81 [00:31<00:00]", {"step": 81, "of": 81, "epoch": 4}),
    ("512it [10:00,  1.25s/it]", {"step": 512, "s": 1.25}),
    ("Running step 2:   4%|▍         | 2.00/50.0 [40:00<16:00:00, 1.20ks/it]", {"step": 2, "of": 50, "s": 1200.0}),
    ("12:00:01 [I] Progress on: 4.5kit/90.0kit rate:2.0it/s remaining:11:52:30 elapsed:0:37:30 postfix:-", {"step": 4500, "of": 90000, "s": 0.5}),
    (" 40%|████      | 20/50 [2:00:00<3:00:00, 360.0s/epoch, loss=-1.25]", {"epoch": 20, "epochs": 50, "loss": -1.25}),
    ("    2|640|Loss: 1.25:  64%|██████▍   | 640/1000 [21:20<12:00,  2.00s/it]", {"step": 640, "of": 1000, "epoch": 2, "loss": 1.25, "s": 2.0}),
    ("Steps:   2%|▏         | 40/2000 [01:20<1:05:20,  2.00s/it, lr=0.0002, step_loss=nan]", {"step": 40, "of": 2000, "lr": 2e-4, "s": 2.0}),
    ("  7/120      3.1G    0.0400    0.0200   0.00500    0.0650        33       640:  50%|█████     | 20/40 [00:10<00:10,  2.00it/s]", {"step": 20, "of": 40, "epoch": 7, "epochs": 120, "loss": 0.065, "s": 0.5}),
    ("      7/120      3.1G      1.310      0.900      1.210        31        640:  50%|█████     | 20/40 [00:10<00:10,  2.00it/s]", {"step": 20, "of": 40, "epoch": 7, "epochs": 120, "s": 0.5}),
    ("      1/30        7G      2.5      1.9      1.1      8      640: 5% ━─────────── 50/1000 2.5it/s 0:20<6:20", {"step": 50, "of": 1000, "epoch": 1, "epochs": 30, "s": 0.4}),
    ("Epoch 0/4 ━━━━━━━━━━ 12/60 0:00:10 • 0:00:40 1.25it/s v_num: 0.000 train_loss: 0.75", {"step": 12, "of": 60, "epoch": 0, "epochs": 4, "loss": 0.75, "s": 0.8}),
    ("Epoch 3/9\n 40/500 [=>............................] - ETA: 1:32 - loss: 0.9000 - accuracy: 0.7", {"step": 40, "of": 500, "epoch": 3, "epochs": 9, "loss": 0.9}),
    ("2500/2500 [==============================] - 12s 5ms/step - loss: 0.4000 - val_loss: 0.5000 - lr: 0.0010", {"step": 2500, "of": 2500, "loss": 0.4, "lr": 1e-3, "s": 0.005}),
    ("{'loss': 1.5, 'grad_norm': 2.25, 'learning_rate': 2e-05, 'epoch': 0.04}", {"epoch": 0.04, "loss": 1.5, "lr": 2e-5}),
    ("{'loss': '1.5', 'learning_rate': '2e-05', 'epoch': '0.04'}", {"epoch": 0.04, "loss": 1.5, "lr": 2e-5}),
    ("{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 0.5}\n\n  5%|▌         | 50/1000 [10:00<3:10:00, 12.00s/it]", {"step": 50, "of": 1000, "epoch": 0.5, "loss": 0.5, "lr": 1e-5, "s": 12.0}),
    ("  5%|▌         | 50/1000 [10:00<3:10:00, 12.00s/it]INFO | trainer - {'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 0.5}", {"step": 50, "of": 1000, "epoch": 0.5, "loss": 0.5, "lr": 1e-5, "s": 12.0}),
    ("{'loss': 1.1, 'train_speed(iter/s)': 0.5, 'epoch': 0.2, 'global_step/max_steps': '30/900', 'percentage': '3.33%'}", {"step": 30, "of": 900, "epoch": 0.2, "loss": 1.1, "s": 2.0}),
    ('{"current_steps": 7, "total_steps": 70, "loss": 1.5, "lr": 1e-05, "epoch": 0.1}', {"step": 7, "of": 70, "epoch": 0.1, "loss": 1.5, "lr": 1e-5}),
    ("[10/10 12:00:00 d2.utils.events]:  eta: 0:40:00  iter: 99  total_loss: 1.25  loss_cls: 0.5  time: 0.2500  data_time: 0.0100  lr: 0.002  max_mem: 900M", {"step": 99, "loss": 1.25, "lr": 2e-3, "s": 0.25}),
    ("2024-05-05 12:00:00,000 - mmengine - INFO - Epoch(train)  [2][ 40/200]  lr: 1.0000e-03  eta: 0:05:00  time: 0.5000  data_time: 0.0100  memory: 900  loss: 0.7500  loss_cls: 0.5", {"step": 40, "of": 200, "epoch": 2, "loss": 0.75, "lr": 1e-3, "s": 0.5}),
    ("2024-05-05 12:00:00,000 - mmseg - INFO - Iter [400/8000]\tlr: 1.000e-03, eta: 1:00:00, time: 0.250, data_time: 0.01, loss: 0.75", {"step": 400, "of": 8000, "loss": 0.75, "lr": 1e-3, "s": 0.25}),
    ("Epoch: [1]  [ 20/400]  eta: 0:03:00  lr: 0.000100  loss: 5.5000 (5.7500)  time: 0.5000  data: 0.0001  max mem: 900", {"step": 20, "of": 400, "epoch": 1, "loss": 5.5, "lr": 1e-4, "s": 0.5}),
    ("Epoch: [3][ 50/500]\tTime  0.250 ( 0.300)\tData  0.001 ( 0.002)\tLoss 2.5000e+00 (2.6000e+00)\tAcc@1  40.00 ( 39.00)", {"step": 50, "of": 500, "epoch": 3, "loss": 2.5, "s": 0.25}),
    ("Train: 2 [  50/500 ( 10%)]  Loss: 3.25 (3.50)  Time: 0.500s,  256.00/s  (0.510s)  LR: 1.000e-04  Data: 0.010", {"step": 50, "of": 500, "epoch": 2, "loss": 3.25, "lr": 1e-4, "s": 0.5}),
    ("Train Epoch: 2 [1280/60000 (2%)]\tLoss: 0.750000", {"step": 1280, "of": 60000, "epoch": 2, "loss": 0.75}),
    ("[2024] INFO Train: [1/90][ 30/900]\teta 3:00:00 lr 0.000010\t wd 0.0500\ttime 0.5000 (0.6000)\tloss 6.5000 (6.6000)", {"step": 30, "of": 900, "epoch": 1, "epochs": 90, "loss": 6.5, "lr": 1e-5, "s": 0.5}),
    ("Epoch [2/5], Step [30/90], Loss: 0.2500", {"step": 30, "of": 90, "epoch": 2, "epochs": 5, "loss": 0.25}),
    ("[2,   900] loss: 1.125", {"step": 900, "epoch": 2, "loss": 1.125}),
    ("[1/20][30/700]\tLoss_D: 0.5000\tLoss_G: 3.5000", {"step": 30, "of": 700, "epoch": 1, "epochs": 20}),
    ("[Epoch 1/20] [Batch 30/700] [D loss: 0.500000] [G loss: 0.700000]", {"step": 30, "of": 700, "epoch": 1, "epochs": 20}),
    ("(epoch: 2, iters: 400, time: 0.125, data: 0.001) G_GAN: 1.0 D_real: 0.5", {"step": 400, "epoch": 2, "s": 0.125}),
    ("[epoch:  3, iter:   1,250, lr:(2.000e-04,)] [eta: 1 day, 2:00:00, time (data): 0.500 (0.001)] l_pix: 2.5000e-02", {"step": 1250, "epoch": 3, "loss": 0.025, "lr": 2e-4, "s": 0.5}),
    ("2024 | INFO | train_inner | epoch 002:     60 / 600 loss=8.5, nll_loss=8, ups=4.0, num_updates=660, lr=0.0002, gnorm=1", {"step": 60, "of": 600, "epoch": 2, "loss": 8.5, "lr": 2e-4}),
    ("| epoch 002 | loss 3.25 | nll_loss 2.0 | ups 3 | num_updates 1200 | lr 0.0003 | gnorm 0.5", {"step": 1200, "epoch": 2, "loss": 3.25, "lr": 3e-4}),
    ("INFO: 2epoch:train:101-150batch: iter_time=1e-04, loss_ctc=50.0, loss=40.5, optim_step_time=0.05, optim0_lr0=1.5e-04, train_time=0.500", {"step": 150, "epoch": 2, "loss": 40.5, "lr": 1.5e-4, "s": 0.5}),
    (" iteration       64/    2000 | consumed samples: 512 | elapsed time per iteration (ms): 500.0 | learning rate: 1.000E-05 | global batch size:     8 | lm loss: 9.500000E+00 | loss scale: 1.0 |", {"step": 64, "of": 2000, "loss": 9.5, "lr": 1e-5, "s": 0.5}),
    ("[2024] [INFO] [logging.py:96:log_dist] [Rank 0] step=30, skipped=0, lr=[3e-05, 3e-05], mom=[(0.9, 0.999)]", {"step": 30, "lr": 3e-5}),
    ("[INFO] [timer.py:260:stop] epoch=1/micro_step=40/global_step=20, RunningAvgSamplesPerSec=5.5", {"step": 20, "epoch": 1}),
    ("step   40 | loss: 5.500000 | lr 3.0000e-04 | norm: 1.0000 | dt: 250.00ms | tok/sec: 4000.00", {"step": 40, "loss": 5.5, "lr": 3e-4, "s": 0.25}),
    ("iter 40: loss 3.5000, time 250.00ms, mfu 30.00%", {"step": 40, "loss": 3.5, "s": 0.25}),
    ("step:40/900 train_loss:5.5000 train_time:9000ms step_avg:nanms", {"step": 40, "of": 900, "loss": 5.5}),
    ("step:40/900 train_loss:5.5000 train_time:9000ms step_avg:225.00ms", {"step": 40, "of": 900, "loss": 5.5, "s": 0.225}),
    ("step 40: train loss 2.5000, val loss 2.7500", {"step": 40, "loss": 2.5}),
    ("completed step: 4, seconds: 2.500, TFLOP/s/device: 100.0, total_weights: 512, loss: 8.500", {"step": 4, "loss": 8.5, "s": 2.5}),
    ("Step... (60/900 | Loss: 2.5, Learning Rate: 0.0003)", {"step": 60, "of": 900, "loss": 2.5, "lr": 3e-4}),
    ("INFO:tensorflow:loss = 2.5, step = 60 (9.500 sec)", {"step": 60, "loss": 2.5}),
    ("INFO:tensorflow:global_step/sec: 4.0", {"s": 0.25}),
    ("I0101 solver.cpp:218] Iteration 60 (4 iter/s, 15s/60 iters), loss = 0.25", {"step": 60, "loss": 0.25, "s": 0.25}),
    (" 60: 0.750000, 0.800000 avg loss, 0.001000 rate, 2.500000 seconds, 3840 images, 1.5 hours left", {"step": 60, "loss": 0.75, "lr": 1e-3, "s": 2.5}),
    ("Ep. 2 : Up. 600 : Sen. 9,600 : Cost 4.25 * 500,000 : Time 40.0s : 12000 words/s", {"step": 600, "epoch": 2, "loss": 4.25}),
    ("   --> TIME: 2024-01-01 -- STEP: 9/90 -- GLOBAL_STEP: 10\n     | > loss: 1.5000  (1.6000)\n     | > current_lr: 0.0002\n     | > step_time: 0.5  (0.6)", {"step": 9, "of": 90, "loss": 1.5, "lr": 0.0002, "s": 0.5}),
    ("Train loss 60 0.500000 Grad Norm 0.250000 1.50s/it", {"step": 60, "loss": 0.5, "s": 1.5}),
    ("[batch=60/600]:\n\t Train loss/train/total: 2.5000", {"step": 60, "of": 600, "loss": 2.5}),
    ("[10/10/2024 12:00:00 gluefactory INFO] [E 2 | it 300] loss {total 1.500E+00, last 7.0E-01}", {"step": 300, "epoch": 2, "loss": 1.5}),
    ("60 (0.20%)         50.000 ms            9 m, 9 s             400.00 K", {"step": 60, "s": 0.05}),
    ("[60]\ttrain-rmse:0.5\tvalid-rmse:0.6", {"step": 60}),
    ("tick 6     kimg 24.2     time 5m 0s       sec/tick 40.0", {"step": 6}),
    ("3         0.250000  0.300000  0.900000  00:12", {"epoch": 3, "loss": 0.25}),
    ("|    total_timesteps      | 4096        |", {"step": 4096}),
    ("[>.............]  Step: 98ms | Tot: 12s | Loss: 1.250 | Acc: 50.000% (64/128)  60/391", {"step": 60, "of": 391, "loss": 1.25, "s": 0.098}),
    ("2024-01-01 INFO     epoch is incremented. current_epoch: 2, epoch: 3", {"epoch": 3}),
    ("22-12-06 - INFO: End of epoch 12 / 50 \t Time Taken: 5.0 sec", {"epoch": 12, "epochs": 50}),
    ("[60/900 02:00 < 28:00, 0.50 it/s, Epoch 0.2/3]", {"step": 60, "of": 900, "epoch": 0.2, "epochs": 3, "s": 2.0}),
    ("epoch=2 step=60 loss=0.25 lr=0.0003 it/s=4.0", {"step": 60, "epoch": 2, "loss": 0.25, "lr": 3e-4, "s": 0.25}),
    ("Epoch 4/9, Train Loss: 0.2500, Val Loss: 0.5000, LR: 0.0001", {"epoch": 4, "epochs": 9, "loss": 0.25, "lr": 1e-4}),
    ("Training epoch 0, iteration 9/99 | lr: 2e-05 | global_step: 9 | reduced_train_loss: 1.5 | train_step_timing in s: 2.5", {"step": 9, "of": 99, "epoch": 0, "loss": 1.5, "lr": 2e-5, "s": 2.5}),
    ("speed: global step 9, epoch: 1, batch: 9, loss: 0.5, speed: 4.0 step/s", {"step": 9, "epoch": 1, "loss": 0.5, "s": 0.25}),
    ("INFO Epoch 1, batch 30, loss[loss=0.5, simple_loss=0.6, over 900 frames.], tot_loss[loss=0.7], lr: 4.0e-02", {"step": 30, "epoch": 1, "loss": 0.5, "lr": 0.04}),
    ("[012500/40000] SET-B  | loss 0.2500 | GPU 97% | 2.50 it/s | batch 8", {"step": 12500, "of": 40000, "loss": 0.25, "s": 0.4}),
    ("INFO -   | [   2/   4][   300/  1200] |  77/900 batches | ms/batch 5.0000 | train_loss 7.5e-01 | lr 2.0e-05", {"step": 300, "of": 1200, "epoch": 2, "epochs": 4, "loss": 0.75, "lr": 2e-5, "s": 0.005}),
    ("| epoch   3 |   400/ 1500 batches | lr 2.50 | ms/batch 20.00 | loss  4.00 | ppl    54.60", {"step": 400, "of": 1500, "epoch": 3, "loss": 4.0, "lr": 2.5, "s": 0.02}),
    ("- Train | Epoch 7 | 90/450 | 2.00 it/sec | Loss 0.1250 | Grad 0.5000", {"step": 90, "of": 450, "epoch": 7, "loss": 0.125, "s": 0.5}),
    ("train: epoch 0007, iter [00090, 00450], lr: 0.020000, loss: 1.5000", {"step": 90, "of": 450, "epoch": 7, "loss": 1.5, "lr": 0.02}),
    ("INFO ts/x.py:9 step:8K smpl:64K ep:300 epch:2.50 loss:0.125 grdn:0.500 lr:2.0e-05 updt_s:0.250 data_s:0.002", {"step": 8000, "epoch": 2.5, "loss": 0.125, "lr": 2e-5, "s": 0.25}),
    ("batch loss:0.25\ncurrent step: 7702th step", {"step": 7702, "loss": 0.25}),
    ("RUN in epoch 2 , step 90, loss = 1.5", {"step": 90, "epoch": 2, "loss": 1.5}),
    ("Epoch 4, Step 30, total used time 900.5 (s), avg loss so far is 0.125", {"step": 30, "epoch": 4, "loss": 0.125}),
    ("  Batch 7/90\n    Loss: 0.5000", {"step": 7, "of": 90, "loss": 0.5}),
    ("step 90/900 | train loss 2.500000 | norm 0.5 | lr 1.00e-04 | (250.00 ms | 409600 tok/s)", {"step": 90, "of": 900, "loss": 2.5, "lr": 1e-4, "s": 0.25}),
    ("iter 90: id:0077, time:2.500(sec), total-loss 0.5(0.25, 0.25)", {"step": 90, "loss": 0.5, "s": 2.5}),
    ("Learning iteration 90/900 \n     Value function loss: 0.2500\n     Surrogate loss: -0.1250", {"step": 90, "of": 900, "loss": 0.25}),
    ("epoch:7 || iter:900 || Loss:4.5000\n->> part one loss:1.5000 || part two loss:3.0000", {"step": 900, "epoch": 7, "loss": 4.5}),
    ("[step=90/9000,epoch=0]\n    train/CrossEntropyLoss=2.500", {"step": 90, "of": 9000, "epoch": 0, "loss": 2.5}),
    ("iteration: 90 / 900 | elapsed_time_per_iteration_ms: 250 | lm_loss: 7.5 | lr: 0.0001", {"step": 90, "of": 900, "loss": 7.5, "lr": 1e-4, "s": 0.25}),
    ("step:90 - actor/lr:0.000002 - timing_s/step:120.5", {"step": 90, "lr": 2e-6, "s": 120.5}),
    ("Epoch 7 \nCurrent learning rate: 0.0025 \ntrain_loss -0.5000 ", {"epoch": 7, "loss": -0.5, "lr": 0.0025}),
    ("INFO: Training iter 90, loss=0.25 (2.500s)", {"step": 90, "loss": 0.25, "s": 2.5}),
    ("Training ━━━━━╸━━━━━━━━━  45% step: 90 loss: 0.250 :: Speed: 0.50it/s :: Elapsed: 0:03:00", {"step": 90, "loss": 0.25, "s": 2.0}),
    ("Episode 90/900, Reward: 12.0, Loss: 0.0250", {"step": 90, "of": 900, "loss": 0.025}),
    ("      7/19     2.500     1.500     5.500     2.250: 100% 9/9 [00:04<00:00,  2.00s/it]", {"step": 9, "of": 9, "epoch": 7, "epochs": 19, "s": 2.0}),
    ("[dev0: train_Ep_7: loss: 2.5e+02]:  20%|| 9/45 [00:02<00:08,  5.00it/s]", {"step": 9, "of": 45, "epoch": 7, "loss": 250.0, "s": 0.2}),
    ("Fine-tuning:  10%|█         | 9/90 [00:09<01:21,  1.00s/it]", {"step": 9, "of": 90, "s": 1.0}),
]  # fmt: skip

OTHER_PHASES = [
    ("sample_steps: 20\n 50%|█████     | 10/20 [00:10<00:10,  1.00it/s]", "sample"),
    ("Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:02<00:02,  1.00s/it]", "load"),
    ("Inference net_3.pt\n9it [00:09,  1.00s/it, loss=0.25]", "eval"),
    ("Running loglikelihood requests:  10%|█         | 90/900 [00:09<01:21, 10.00it/s]", "eval"),
    ("100%|██████████| 40/40 [00:10<00:00,  4.00it/s, val_loss=0.25]", "eval"),
    ("CV Batch 3/90 loss 8.5 history loss 8.6", "eval"),
    ("Loading checkpoint shards:  50%|█████     | 2/4 [00:10<00:10,  5.0s/it]", "load"),
    ("Downloading shards: 100%|██████████| 3/3 [05:00<00:00, 100.0s/it]", "load"),
    ("Fetching 12 files:  50%|█████     | 6/12 [00:01<00:01,  6.0it/s]", "load"),
    ("model-00001-of-00002.safetensors:  40%|████      | 2.00G/5.00G [00:30<00:45, 66.0MB/s]", "load"),
    ("     ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 80.0/195.0 MB 6.2 MB/s eta 0:00:19", "load"),
    ("100%|██████████| 170498071/170498071 [00:03<00:00, 48123456.12it/s]", "load"),
    ("Map (num_proc=4):  10%|█         | 100/1000 [00:01<00:09, 100.00 examples/s]", "preprocess"),
    ("Generating train split: 900 examples [00:00, 9000.00 examples/s]", "preprocess"),
    ("Tokenizing:  10%|█         | 100/1000 [00:01<00:09, 100.0it/s]", "preprocess"),
    ("caching latents.\n 33%|███▎      | 10/30 [00:03<00:06,  3.0it/s]", "preprocess"),
    ("Scanning /data/labels/train... 90 images, 3 corrupt:  45%|████▌     | 90/200 [00:01<00:01, 100.1it/s]", "preprocess"),
    ("Analyzing graphs:  27%|██▋       | 90/333 [00:09<00:24, 10.0it/s]", "preprocess"),
    ("make_experience:  25%|██▌       | 8/32 [09:54<29:42, 74.3s/it]", "sample"),
    ("Loading 90 train images ...\n90it [00:02, 45.0it/s]", "load"),
    ("Dataset progress:  50%|█████     | 9/18 [00:01<00:01, 9.0it/s]", "preprocess"),
    ("[Diff-Val(Normal)] Epoch 007 (Deterministic): loss = 0.0025", "eval"),
    ("Stage.EVAL\nloss: 0.5000\nAccuracy: 50.00", "eval"),
    ("Validation DataLoader 0:  10%|█         | 5/50 [00:00<00:05,  8.80it/s]", "eval"),
    ("Sanity Checking DataLoader 0:  50%|█████     | 1/2 [00:00<00:00,  2.00it/s]", "eval"),
    ("***** Running Evaluation *****\n  Num examples = 90\n  Batch size = 8\n  2%|▏         | 3/125 [00:01<00:40,  3.0it/s]", "eval"),
    ("  2%|▏         | 30/900 [00:07<03:30,  4.0it/s]Setting `pad_token_id` to `eos_token_id`:2 for open-end generation.", "eval"),
    ("{'eval_loss': 0.5, 'eval_runtime': 12.0, 'epoch': 1.0}", "eval"),
    ("| epoch 002 | valid on 'valid' subset | loss 9.0 | ppl 300.00 | num_updates 1200", "eval"),
    ("Epoch [3/9], Validation Loss: 0.5000, Validation L1: 0.2500", "eval"),
    ("Epoch(val) [3][20/100]    eta: 0:00:10  time: 0.1  data_time: 0.01", "eval"),
    ("Epoch 1 (valid):  13%|█▎        | 13/100 [00:03<00:21,  4.01it/s, loss: 0.4512]", "eval"),
    ("313/313 [==============================] - 1s 2ms/step", "eval"),
    ("[>>>>      ] 50/100, 12.3 task/s, elapsed: 4s, ETA:     4s", "eval"),
    ("generating sample images at step: 500\n 11%|█         | 3/28 [00:03<00:25,  1.00s/it]", "sample"),
    ("saving checkpoint: ./output/mine-000004.safetensors", "save"),
    ("SingleProcess AUTOTUNE benchmarking takes 0.5 seconds", "compile"),
    ("***** Running training *****", "train"),
    ("`Trainer.fit` stopped: `max_epochs=3` reached.\nTraining completed.", "finish"),
    ("2024-01-01 worker 3 wrote result 17 of 90 to the queue", "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expect"), TRAINING, ids=[text.strip()[:40] for text, _ in TRAINING])
def test_progress_of_training_lines(text: str, expect: dict[str, float]) -> None:
    progress = progress_of([text])
    got = {name: getattr(progress, field) for name, field in NAMES.items()}
    assert got == {name: pytest.approx(expect[name], rel=1e-4) if name in expect else None for name in NAMES}
    assert progress.phase == ("train" if expect else "unknown")


@pytest.mark.parametrize(("text", "phase"), OTHER_PHASES, ids=[text.strip()[:40] for text, _ in OTHER_PHASES])
def test_progress_other_phases_never_move_the_step(text: str, phase: str) -> None:
    progress = progress_of([text])
    assert progress.phase == phase
    assert progress == Progress(phase=progress.phase)


def test_progress_shape_names_are_unique_and_sourced() -> None:
    names = [row.name for row in SHAPES.rows]
    assert len(set(names)) == len(names)
    assert all(row.source and row.gates for row in SHAPES.rows)


def test_progress_user_shape_comes_first() -> None:
    shapes = user_shapes([r"^tick=(?P<step>\d+)/(?P<total>\d+) cost=(?P<loss>[\d.]+)"])
    progress = progress_of(["tick=5/50 cost=0.5\n" * 3], shapes)
    assert (progress.step, progress.total_steps, progress.loss) == (5, 50, 0.5)
    assert progress_of(["x" * 9000 + "\ntick=6/50 cost=0.25\n"], shapes).step == 6


@pytest.mark.parametrize("pattern", ["(", r"step \d+", r"(?P<stepp>\d+)"])
def test_progress_user_shape_that_cannot_work_is_refused_in_one_line(pattern: str) -> None:
    with pytest.raises(ValueError, match="progress shape") as refused:
        user_shapes([pattern])
    assert "\n" not in str(refused.value)


def test_progress_several_user_shapes_with_the_same_groups() -> None:
    shapes = shapes_of(
        [r"it=(?P<step>\d+) of (?P<total_steps>\d+)", r"(?P<step>\d+)th, round (?P<epoch>\d)/(?P<total_epochs>\d)"]
    )
    progress = progress_of(["x" * 9000 + "\nit=6 of 50\n7th, round 2/9\n"], shapes)
    assert (progress.step, progress.total_steps, progress.epoch, progress.total_epochs) == (7, 50, 2, 9)
    assert shapes_of(()) is SHAPES


def test_progress_user_shape_may_refer_back() -> None:
    shapes = user_shapes([r"(?P<step>\d+) (odd|even) is \2"])
    assert progress_of(["9 odd is odd\n8 odd is even\n"], shapes).step == 9
