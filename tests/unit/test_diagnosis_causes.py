"""Root, cascade, noise, survival and exit status, each on lines of our own."""

import msgspec
import pytest

from tests.shipped import CATALOGUE, FAILURES, SHAPES
from trainwatch.core.judge.failure.catalogue import compile_catalogue, own_signatures
from trainwatch.core.judge.failure.diagnosis import (
    START_EVIDENCE,
    DiagnosisState,
    diagnose,
    diagnosis_of,
    is_news,
    kernel_evidence,
    read_evidence,
)

BAR = "\rsteps:  10%|█         | {0}/100 [00:10<01:30,  1.00s/it, loss=0.5]"
OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB\n"
TRACE = 'Traceback (most recent call last):\n  File "/job/train.py", line 3, in <module>\n    main()\n'

CAUSES = [
    ("hang", "[F ProcessGroupNCCL.cpp:9] Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang."),
    ("host_oom", "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."),
    ("host_oom", "OSError: [WinError 1455] The paging file is too small for this operation to complete."),
    ("host_oom", "joblib.TerminatedWorkerError: A worker was terminated, maybe caused by a segmentation fault.\nThe exit codes are {SIGKILL(-9)}"),
    ("network_error", "huggingface_hub.errors.LocalEntryNotFoundError: please check your connection"),
    ("network_error", "aiohttp.client_exceptions.ServerDisconnectedError: Server disconnected"),
    ("network_error", "ValueError: Connection error, and the files are not cached; make sure your Internet connection is on."),
    ("network_error", "wandb.sdk.lib.retry.TransientError: Timed out"),
    ("nccl_timeout", "RuntimeError: [pair.cc:5] gloo read error: connection reset by peer"),
    ("nccl_timeout", "RuntimeError: Connection reset by peer"),
    ("cuda_unknown_error", "RuntimeError: NCCL error in: x.cpp:9, unhandled cuda error\nLast error:\nCuda failure 'unknown error'"),
    ("config_error", "DistBackendError: NCCL error in: x.cpp:9, invalid usage\nncclInvalidUsage: This usually reflects invalid usage.\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 9"),
    ("config_error", "ValueError: rendezvous env://: environment variable MASTER_PORT expected, but not set"),
    ("config_error", "ValueError: --fp99 can only be used on newer devices."),
    ("config_error", "KeyError: 'LOCAL_RANK'"),
    ("config_error", "SyntaxError: 'epoks' is not a valid YOLO argument."),
    ("config_error", "KeyError: \"Dataset 'mine' is not registered! Available datasets are: a, b\""),
    ("checkpoint_mismatch", "KeyError: 'optimizer_state_dict'"),
    ("checkpoint_mismatch", "ValueError: shape of variable x doesn't match with shape of tensor x from checkpoint"),
    ("import_error", "RuntimeError: operator torchvision::roi does not exist"),
    ("import_error", "/usr/bin/python: No module named odd"),
    ("import_error", "RuntimeError: the versions of these two packages: versions are incompatible"),
    ("driver_mismatch", "RuntimeError: Distributed package doesn't have NCCL built in"),
    ("driver_mismatch", "RuntimeError: this kernel requires a GPU of compute capability 9.0"),
    ("dtype_error", "RuntimeError: output tensor must have the same type as input tensor"),
    ("triton_compile", "torch._dynamo.exc.Unsupported: call_function of odd things"),
    ("triton_compile", "RuntimeError: Error compiling objects for extension"),
    ("io_error", "RuntimeError: Error loading audio file: failed to open file /d/x.wav"),
    ("io_error", "cv2.error: OpenCV(4.8.0) error: (-215:Assertion failed) !_src.empty() in function 'cvtColor'"),
    ("io_error", "zlib.error: Error -3 while decompressing data: incorrect header check"),
    ("code_bug", "struct.error: something odd"),
    ("network_error", "odd.OddTimeoutError: x"),
    ("config_error", "odd.ConfigOddnessError: x"),
    ("code_bug", "ValueError: min() arg is an empty sequence"),
    ("checkpoint_mismatch", "    start = resume_state['iter'] + 1\nKeyError: 'iter'"),
    ("code_bug", "ValueError: Expected input batch_size (9) to match target batch_size (8)."),
    ("cuda_oom", "XlaRuntimeError: INTERNAL: Failed to allocate 99 bytes for new constant"),
    ("segfault", "Process finished with exit code -1073741819 (0xC0000005)"),
    ("cuda_oom", OOM),
    ("cuda_oom", "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 99 bytes."),
    ("cuda_oom", "RuntimeError: CUDA error: out of memory"),
    ("host_oom", "slurmstepd: error: Detected 2 oom_kill events in StepId=7.batch."),
    ("host_oom", "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 9.00 GiB for an array"),
    ("host_oom", "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
    ("cuda_unknown_error", "RuntimeError: CUDA error: unknown error"),
    ("cuda_illegal_access", "RuntimeError: Triton Error [CUDA]: misaligned address"),
    ("cuda_device_assert", "Loss.cu:250: nll_loss: block: [0,0,0], thread: [3,0,0] Assertion `t < n_classes` failed."),
    ("cuda_launch_failure", "OSError: (External) CUDA error(719), unspecified launch failure."),
    ("cuda_launch_failure", "RuntimeError: CUDA error: the launch timed out and was terminated"),
    ("gpu_lost", "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    ("driver_mismatch", "DistBackendError: NCCL error in: x.hpp:9, internal error\nnvmlInit_v2() failed: Driver/library version mismatch"),
    ("nccl_timeout", "[E ProcessGroupNCCL.cpp:5] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)"),
    ("hang", "[F ProcessGroupNCCL.cpp:9] [Rank 2] ProcessGroupNCCL's watchdog got stuck for 600 seconds without progress"),
    ("cudnn_cublas_error", "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
    ("triton_compile", "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nImportError: cannot import name 'key'"),
    ("nan_loss", "FloatingPointError: Loss became infinite or NaN at iteration=9!"),
    ("nan_loss", "Epoch 1 step 5 loss nan\nEpoch 1 step 6 loss nan\n"),
    ("dataloader_crash", "RuntimeError: DataLoader worker (pid 77) is killed by signal: Segmentation fault."),
    ("dataloader_crash", "RuntimeError: unable to write to file </torch_77_88>: No space left on device (28)"),
    ("disk_full", "safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 122, kind: FilesystemQuotaExceeded })"),
    ("disk_full", "OSError: [Errno 5] Input/output error\ncp: writing 'x': No space left on device"),
    ("io_error", "OSError: [Errno 116] Stale file handle: '/mnt/x'"),
    ("network_error", "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='h', port=443): Read timed out."),
    ("checkpoint_corrupt", "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"),
    ("checkpoint_corrupt", "zipfile.BadZipFile: File is not a zip file"),
    ("checkpoint_mismatch", "\tsize mismatch for head.weight: copying a param with shape torch.Size([3]) from checkpoint"),
    ("config_error", "train.py: error: unrecognized arguments: --epocs 3"),
    ("config_error", TRACE + "    size = cfg['size']\n           ~~~^^^^^^^^\nKeyError: 'size'"),
    ("code_bug", TRACE + "    size = table['size']\nKeyError: 'size'"),
    ("code_bug", TRACE + "TypeError: step() missing 1 required positional argument: 'metrics'"),
    ("config_error", "mylib.errors.BadConfigThingError: no"),
    ("network_error", "mylib.LakeConnectionError: gone"),
    ("import_error", "ModuleNotFoundError: No module named 'apex'"),
    ("dtype_error", "RuntimeError: Input type (CUDABFloat16Type) and weight type (torch.FloatTensor) should be the same"),
    ("code_bug", "RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same"),
    ("port_in_use", "[W socket.cpp:4] server socket failed to bind (errno: 98 - Address already in use).\nValueError: Default process group has not been initialized"),
    ("segfault", "77 segmentation fault (core dumped)  python train.py"),
    ("killed_by_user", "slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2024-01-01T00:00:00 ***"),
    ("driver_mismatch", "nvrtc: error: invalid value for --gpu-architecture (-arch)"),
    ("killed_by_user", "[INFO] [launch.py:9:sigkill_handler] Main process received SIGTERM, exiting"),
    ("host_oom", "9 steps done\n已杀死\n"),
    ("segfault", "段错误 (核心已转储)\n"),
    ("segfault", "Windows fatal exception: access violation"),
    ("segfault", "api:failed (exitcode: -7) local_rank: 0 (pid: 77) of binary: /usr/bin/python"),
    ("cuda_oom", "x.h:77: cudaMalloc retry failed: out of memory"),
    ("cuda_oom", "F01 syncedmem.cpp:7] Check failed: error == cudaSuccess (2 vs. 0)  out of memory"),
    ("nan_loss", "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 0.0\nZeroDivisionError: float division by zero"),
    ("cudnn_cublas_error", "CUBLAS failure 13: CUBLAS_STATUS_EXECUTION_FAILED ; GPU=0 ; expr=gemm(a)"),
    ("nccl_timeout", "RuntimeError: [2] is setting up NCCL communicator and retrieving ncclUniqueId from [0], but store->get('0') got error: gone"),
    ("dataloader_crash", "    ForkingPickler(file, protocol).dump(obj)\nBrokenPipeError: [Errno 32] Broken pipe"),
    ("checkpoint_mismatch", "ValueError: Requested shape: (7, 9) is not compatible with the stored shape: (8, 9)."),
    ("checkpoint_mismatch", "KeyError: 'Missing key in checkpoint state_dict: optimizer.state.x.'"),
    ("config_error", "ValueError: --keep_best requires the save and eval strategy to match, but found"),
    ("config_error", "ValueError: Unrecognized model in ./mine. Should have a `model_type` key in its config.json"),
    ("config_error", "OSError: Can't load tokenizer for 'mine'. If you were trying to load it from a hub"),
    ("config_error", 'Lmod has detected the following error: The following module(s) are unknown: "cuda/99"'),
    ("checkpoint_mismatch", TRACE + "    optimizer.load_state_dict(saved['optimizer'])\nKeyError: 'optimizer'"),
    ("checkpoint_mismatch", TRACE + "    best = checkpoint['best']\nKeyError: 'best'"),
    ("host_oom", "ERROR: error code -9\n"),
    ("killed_by_user", TRACE + "KeyboardInterrupt\n^C\n"),
]  # fmt: skip


def state_of(text: str) -> DiagnosisState:
    return read_evidence(START_EVIDENCE, text, CATALOGUE)


@pytest.mark.parametrize(("failure", "text"), CAUSES, ids=[f"{failure}-{text[:30]}" for failure, text in CAUSES])
def test_diagnosis_names_the_mechanism(failure: str, text: str) -> None:
    answer = diagnosis_of([text], CATALOGUE, 1)
    assert answer.failure == failure
    assert answer.explanation
    assert answer.remedies
    assert answer.cause is not None


def test_diagnosis_first_of_equals_is_the_cause_and_later_ones_the_cascade() -> None:
    text = (
        "step 1\nRuntimeError: CUDA error: uncorrectable ECC error encountered\n"
        "[E ProcessGroupNCCL.cpp:9] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5)\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
    )
    answer = diagnosis_of([text], CATALOGUE, 1)
    assert (answer.failure, answer.cause and answer.cause.line) == ("gpu_lost", 2)
    assert [line.line for line in answer.cascade] == [3, 4]


def test_diagnosis_ranks_and_boxes_are_read_through() -> None:
    assert (
        diagnosis_of(
            ["[rank3]: Traceback (most recent call last):\n[rank3]: ModuleNotFoundError: No module named 'x'\n"],
            CATALOGUE,
            1,
        ).failure
        == "import_error"
    )
    boxed = "│ ❱ 12 │   raise KeyError('lr is not found')  │\n╰────╯\nTypeError: unhashable type: 'list'\n"
    assert diagnosis_of([boxed], CATALOGUE, 1).failure == "code_bug"


def test_diagnosis_redrawn_bar_after_an_error_does_not_outlive_it() -> None:
    assert diagnosis_of([BAR.format(4) + "\n" + OOM + BAR.format(4)], CATALOGUE, 1).failure == "cuda_oom"


def test_diagnosis_error_after_which_training_went_on_is_no_cause() -> None:
    text = OOM + "".join(BAR.format(step) for step in range(5, 12)) + "\nKeyboardInterrupt\n"
    answer = diagnosis_of([text], CATALOGUE, 130)
    assert answer.failure == "killed_by_user"
    assert diagnosis_of([OOM + "".join(BAR.format(step) for step in range(5, 12))], CATALOGUE, 0).failure == "success"


def test_diagnosis_survived_error_is_still_shown_when_nothing_else_is() -> None:
    answer = diagnosis_of([OOM + "".join(BAR.format(step) for step in range(5, 12))], CATALOGUE, 1)
    assert answer.failure == "unknown"
    assert answer.confidence < 0.5
    assert answer.cause is not None
    assert answer.cause.line == 1


def test_diagnosis_nan_outlived_by_a_finite_loss() -> None:
    nan = "{'loss': nan, 'learning_rate': 1e-05, 'epoch': 0.1}\n"
    fine = "".join(f"{{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 0.{step}}}\n" for step in range(2, 9))
    assert diagnosis_of([nan, fine], CATALOGUE, 0).failure == "success"
    assert diagnosis_of([nan.replace("0.1", f"0.{step}") for step in range(1, 9)], CATALOGUE, 0).failure == "nan_loss"


@pytest.mark.parametrize(
    "line",
    [
        "/lib/x.py:3: FutureWarning: CUDA out of memory will be an error in future",
        "WARNING CUDA OutOfMemoryError in TaskAlignedAssigner, using CPU",
        "WARNING: ran out of memory, skipping batch",
        "TensorBoard could not bind to port 6006, it was already in use",
        "urllib3 Retrying (Retry(total=4)) after connection broken by ReadTimeoutError",
        "validation error: 0.125",
    ],
)
def test_diagnosis_noise_is_no_evidence(line: str) -> None:
    assert diagnosis_of([line], CATALOGUE, 0).failure == "success"
    assert diagnosis_of([line], CATALOGUE, 1).failure == "unknown"


EXITS = [
    (0, None, "success"),
    (139, None, "segfault"),
    (-11, None, "segfault"),
    (None, "SIGSEGV", "segfault"),
    (130, None, "killed_by_user"),
    (None, "int", "killed_by_user"),
    (143, None, "killed_by_user"),
    (137, None, "unknown"),
    (-9, None, "unknown"),
    (None, 9, "unknown"),
    (134, None, "unknown"),
    (-40, None, "unknown"),
    (1, None, "unknown"),
    (None, None, "unknown"),
    (None, 0, "unknown"),
    (200, None, "unknown"),
    (126, None, "config_error"),
    (127, None, "config_error"),
]


@pytest.mark.parametrize(("code", "signal", "failure"), EXITS)
def test_diagnosis_exit_status_alone(code: int | None, signal: int | str | None, failure: str) -> None:
    answer = diagnose(START_EVIDENCE, CATALOGUE, exit_code=code, signal=signal)
    assert answer.failure == failure
    assert failure != "unknown" or answer.confidence <= 0.3


def test_diagnosis_sigkill_is_a_memory_shortage_only_with_evidence() -> None:
    assert diagnose(START_EVIDENCE, CATALOGUE, exit_code=137, oom_kills=1).failure == "host_oom"
    child = "error: failed (exitcode: -9) local_rank: 0 (pid: 4)\n"
    likely = diagnosis_of([child], CATALOGUE, 1)
    assert (likely.failure, likely.confidence < 0.6) == ("host_oom", True)
    assert diagnose(state_of(child), CATALOGUE, exit_code=1, oom_kills=0).failure == "unknown"
    assert diagnose(state_of(child), CATALOGUE, exit_code=1, oom_kills=2).confidence >= 0.9
    assert (
        diagnose(
            state_of("slurmstepd: error: Detected 1 oom_kill event in x\n"), CATALOGUE, exit_code=137, oom_kills=1
        ).cause
        is not None
    )


def test_diagnosis_operator_stop_wins() -> None:
    assert diagnose(state_of(OOM), CATALOGUE, exit_code=1, stopped_by_operator=True).failure == "killed_by_user"


def test_diagnosis_exit_zero_with_a_traceback_as_the_last_word_is_not_success() -> None:
    answer = diagnosis_of([TRACE + OOM], CATALOGUE, 0)
    assert answer.failure == "cuda_oom"
    assert answer.confidence <= 0.6
    assert diagnosis_of([TRACE + OOM + "Training completed\n"], CATALOGUE, 0).failure == "success"


def test_diagnosis_lost_exit_status_trusts_closing_words() -> None:
    assert (
        diagnosis_of(["{'train_runtime': 12.5, 'train_loss': 0.5, 'epoch': 1.0}\n"], CATALOGUE, None).failure
        == "success"
    )
    assert diagnosis_of([OOM + "Training completed\n"], CATALOGUE, None).failure == "success"
    assert diagnosis_of(["Training completed\n" + OOM], CATALOGUE, None).failure == "cuda_oom"
    assert diagnose(START_EVIDENCE, CATALOGUE, finished_hint=True).failure == "success"


def test_diagnosis_weak_evidence_is_weak() -> None:
    answer = diagnosis_of(["RuntimeError: odd\n"], CATALOGUE, 1)
    assert (answer.failure, answer.confidence < 0.5) == ("code_bug", True)
    assert diagnosis_of(["RuntimeError: odd\n"], CATALOGUE, 134).failure == "code_bug"
    assert diagnosis_of(["[rank1]: BrokenPipeError: [Errno 32] Broken pipe\n"], CATALOGUE, 1).failure == "unknown"
    assert diagnosis_of(["Sending process 7 closing signal SIGTERM\n"], CATALOGUE, 1).failure == "killed_by_user"


def test_diagnosis_kernel_lines_come_first() -> None:
    state = kernel_evidence(
        state_of("RuntimeError: CUDA error: unknown error\n"),
        "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
    )
    answer = diagnose(state, CATALOGUE, exit_code=1)
    assert (answer.failure, answer.cause and answer.cause.line) == ("gpu_lost", 0)
    assert kernel_evidence(START_EVIDENCE, "usb 1-1: new device\nNVRM: Xid (PCI:0): 45, clean-up").findings == ()


def test_diagnosis_state_is_bounded_and_survives_json() -> None:
    state = state_of("".join(text + "\n" for _, text in CAUSES) * 30)
    encoded = msgspec.json.encode(state)
    assert len(encoded) < 40_000
    assert msgspec.json.decode(encoded, type=DiagnosisState) == state
    assert len(diagnose(state, CATALOGUE, exit_code=1).cascade) <= 12


def test_diagnosis_line_numbers_count_newlines_over_all_chunks() -> None:
    state = START_EVIDENCE
    for chunk in ("one\ntwo\r", "still two\nth", "ree\n" + OOM):
        state = read_evidence(state, chunk, CATALOGUE)
    answer = diagnose(state, CATALOGUE, exit_code=1)
    assert answer.cause is not None
    assert answer.cause.line == 4


@pytest.mark.parametrize(
    ("line", "news"),
    [
        ("RuntimeError: odd", True),
        ("CUDA out of memory. Tried to allocate", True),
        ("Saving model checkpoint to out/checkpoint-500", True),
        ("/lib/x.py:3: UserWarning: something failed", False),
        ("worker 3 read item 17", False),
    ],
)
def test_diagnosis_is_news(line: str, news: bool) -> None:
    assert is_news(line, CATALOGUE) is news


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("2024-01-01 - INFO - 预训练任务圆满结束 (总耗时: 2 小时)\n", "success"),
        ("Training of experiment is done and the best AP is 50.00\n", "success"),
        ("Monitored metric val_loss did not improve in the last 9 records. Signaling Trainer to stop.\n", "success"),
        ("Total Training Time: 9.50 min\n", "success"),
        ("{'train_runtime': 90.5, 'train_loss': 1.5, 'epoch': 2.0}\n", "success"),
        ("{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 2.3, 'train_runtime': 90.5}\n" * 3, "unknown"),
    ],
)
def test_diagnosis_end_that_is_told_without_an_exit_status(text: str, failure: str) -> None:
    assert diagnosis_of([text], CATALOGUE).failure == failure


def test_diagnosis_of_an_actor_that_is_gone_is_not_a_bug_of_the_program() -> None:
    answer = diagnosis_of(["ray.exceptions.ActorUnavailableError: The actor 77 is unavailable\n"], CATALOGUE, 1)
    assert answer.failure == "unknown"
    assert answer.cascade


def test_diagnosis_step_cancelled_because_a_task_failed_is_a_cascade() -> None:
    text = (
        "AssertionError: throughput of at least 9.0 expected, found 4.0\n"
        "srun: error: n1: task 0: Exited with exit code 1\n"
        "slurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***\n"
    )
    assert diagnosis_of([text], CATALOGUE, 1).failure == "code_bug"


def test_diagnosis_loss_of_zero_beside_a_nan_norm_is_nan() -> None:
    text = "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 1.5}\n{'train_runtime': 9.0, 'train_loss': 0.5}\n"
    assert diagnosis_of([text], CATALOGUE, 0).failure == "nan_loss"


def test_diagnosis_words_of_a_generic_exception_are_never_sure() -> None:
    for text in ("ValueError: please set the learning_rate", "RuntimeError: the server disconnected", "OddError: x"):
        assert diagnosis_of([text], CATALOGUE, 1).confidence < 0.8


def test_diagnosis_own_patterns_of_a_project_count_most() -> None:
    own = own_signatures({"io_error": (r"tape robot", r"drum \d+ jammed"), "no_such_class": ("x",)})
    catalogue = compile_catalogue(FAILURES, SHAPES, own)
    answer = diagnosis_of(
        ["RuntimeError: CUDA error: unknown error\nthe tape robot says drum 9 jammed\n"], catalogue, 1
    )
    assert (answer.failure, answer.confidence, answer.cause and answer.cause.line) == ("io_error", 0.97, 2)


def test_diagnosis_unknown_shows_the_last_lines_and_all_that_was_suspicious() -> None:
    text = "begin\nBrokenPipeError: [Errno 32] Broken pipe\n\n\r 10%|█ | 1/9 [00:01<00:08]\r 20%|██ | 2/9 [00:02<00:07]\nbye"
    answer = diagnosis_of([text], CATALOGUE, 1)
    assert answer.failure == "unknown"
    cause = [] if answer.cause is None else [(answer.cause.line, answer.cause.text)]
    shown = sorted([*cause, *((each.line, each.text) for each in answer.cascade)])
    assert shown == [
        (2, "BrokenPipeError: [Errno 32] Broken pipe"),
        (4, "20%|██ | 2/9 [00:02<00:07]"),
        (5, "bye"),
    ]
    assert diagnosis_of([text[:40], text[40:]], CATALOGUE, 1) == answer


def test_diagnosis_unknown_of_a_long_log_numbers_its_last_lines() -> None:
    answer = diagnosis_of([f"row {n} of nothing in particular\n" for n in range(1, 2001)], CATALOGUE, 1)
    assert [(each.line, each.text[:8]) for each in answer.cascade] == [
        (1998, "row 1998"), (1999, "row 1999"), (2000, "row 2000"),
    ]  # fmt: skip
    assert diagnosis_of(["x" * 9000], CATALOGUE, 1).cascade[0].line == 1


def test_diagnosis_of_a_command_that_is_no_program_is_its_configuration_unless_the_log_says_more() -> None:
    rule = diagnosis_of(["step 1\n"], CATALOGUE, 127)
    assert (rule.failure, rule.retryable) == ("config_error", False)
    assert diagnosis_of([OOM], CATALOGUE, 127).failure == "cuda_oom"
