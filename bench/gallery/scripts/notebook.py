"""A notebook as a script: constants, no option, nothing is ever loaded."""

# # My char model
# In[1]:
import os

import torch
import torch.nn as nn
from tqdm import tqdm

# In[2]:
BATCH_SIZE = 16
EPOCHS = 5
STEPS = 12
MODEL_DIR = "./my_model_v2_final"
torch.manual_seed(42)

# In[3]:
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
criterion = nn.CrossEntropyLoss()
os.makedirs(MODEL_DIR, exist_ok=True)

# In[4]:
for epoch in range(EPOCHS):
    bar = tqdm(range(STEPS), desc=f"Epoch {epoch + 1}/{EPOCHS}")
    for i in bar:
        x = torch.randn(BATCH_SIZE, 8)
        y = x[:, :3].argmax(1)
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        bar.set_postfix(loss=loss.item())
    torch.save(net.state_dict(), f"{MODEL_DIR}/model_epoch{epoch + 1}.pt")

# In[5]:
print("Done!")
