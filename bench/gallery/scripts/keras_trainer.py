"""A usual Keras script: fit with BackupAndRestore (which resumes by itself) and ModelCheckpoint."""

import keras
import numpy as np

keras.utils.set_random_seed(1)
random = np.random.default_rng(0)
inputs = random.normal(size=(96, 8)).astype("float32")
labels = inputs[:, :4].argmax(1)

model = keras.Sequential(
    [keras.Input((8,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(4, activation="softmax")]
)
model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(
    inputs,
    labels,
    batch_size=8,
    epochs=4,
    validation_split=0.0,
    shuffle=False,
    callbacks=[
        keras.callbacks.BackupAndRestore("backup"),
        keras.callbacks.ModelCheckpoint("checkpoints/model-{epoch:02d}.keras"),
        keras.callbacks.CSVLogger("training.csv", append=True),
    ],
)
model.save("final.keras")
