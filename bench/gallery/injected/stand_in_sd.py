"""For sd-scripts, whose U-Net has the fixed channels of Stable Diffusion: those of the tiny random one."""

import sys

from sitecustomize import AfterImport

CHANNELS = (32, 32, 32, 32)


def tiny(module):
    module.BLOCK_OUT_CHANNELS = CHANNELS
    module.TIMESTEP_INPUT_DIM = CHANNELS[0]
    module.TIME_EMBED_DIM = CHANNELS[0] * 4


sys.meta_path.insert(0, AfterImport("library.original_unet", tiny))
