"""Plain lm-eval asks prompts that fit, by the same rule as a run of our own."""

import pytest
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

from medtasks_ext.models import Oracle
from tests.run_files import samples_of


class Small(Oracle):
    """A context of so many characters, one token each; keeps what it was asked."""

    tokenizer = object()

    def __init__(self, room: int) -> None:
        super().__init__()
        self.max_length, self.asked = room, []

    def tok_encode(self, text: str) -> list[str]:
        return list(text)

    def generate_until(self, requests, disable_tqdm=False):
        self.asked += [request.args[0] for request in requests]
        return super().generate_until(requests)


@pytest.mark.parametrize("room", [600, 800, 100_000])
def test_prompts_are_cut_as_a_run_of_our_own_cuts_them(medtasks, built_tasks, monkeypatch, tmp_path, room):
    monkeypatch.setenv("MEDTASKS_DATA", "sample")
    model = Small(room)
    simple_evaluate(
        model=model,
        tasks=["bridge_chip_ctc_5shot"],
        task_manager=TaskManager(
            include_defaults=False, include_path=str(built_tasks), metadata={"prompts": "own"}
        ),
        apply_chat_template=True,
        fewshot_as_multiturn=True,
        gen_kwargs="max_gen_toks=10",
        bootstrap_iters=0,
    )
    for name, value in (("max_length", room), ("tokenizer", object()), ("tok_encode", Small.tok_encode)):
        monkeypatch.setattr(Oracle, name, value, raising=False)
    medtasks.done(
        *(
            "run",
            "--model",
            "oracle",
            "--tasks",
            "bridge_chip_ctc_5shot",
            "--prompts",
            "own",
            "--output_path",
            "run",
        ),
        *("--apply_chat_template", "--gen_kwargs", "max_gen_toks=10"),
    )
    samples = samples_of(tmp_path / "run", "bridge_chip_ctc_5shot")
    assert model.asked == [sample["arguments"]["gen_args_0"]["arg_0"] for sample in samples]
    assert all(len(prompt) <= room - 10 for prompt in model.asked)
