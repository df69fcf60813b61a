"""Text that is not open: which servers may receive it, whatever the command, and what is noted of that.

Names of hosts are looked up in a table, and connections to the addresses of the invented network end at the
scripted server of this machine.
"""
# ruff: noqa: F811

import errno
import ipaddress
import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakKeyDictionary

import pytest
import requests as requests_library
import yaml
from lm_eval.api.instance import Instance
from lm_eval.api.registry import register_model
from lm_eval.models.api_models import JsonChatStr
from lm_eval.models.openai_completions import LocalChatCompletion, LocalCompletionsAPI
from lm_eval.tasks import TaskManager
from yarl import URL

from medtasks_ext.egress import TRUSTED_HOSTS, AskedServer, Egress, Permission, Text
from medtasks_ext.engines import Answer, Fault, FaultKind, Request
from medtasks_ext.engines.api import ApiEngine
from medtasks_ext.engines.lm import engine_of
from medtasks_ext.errors import MedtasksError
from medtasks_ext.run.store import Answers, rows_in
from medtasks_ext.runs.manifest import Manifest
from tests.conftest import ROOT, sft_row, write_jsonl
from tests.engines import server as scripted
from tests.engines.conftest import ListFeed
from tests.judge.conftest import jury, quick_pauses, run, server, tasks  # noqa: F401  (fixtures)
from tests.studies.contamination_models import Words

GPU, OUTSIDE = "gpu1.hospital.lan", "api.elsewhere.example"
ADDRESSES = yaml.safe_load((ROOT / "tests" / "addresses.yaml").read_text(encoding="utf-8"))
OPEN, CLOSED = Text("medhelm_qa", is_open=True), Text("medhelm_gated", is_open=False)


class Names(dict[str, str]):
    """Host -> address, which a test may change.

    Attributes:
        contacts: hosts that were looked up and addresses that were connected to, in order.
    """

    contacts: list[str]


@pytest.fixture
def names(monkeypatch):
    """Names of hosts; addresses of two networks lead to this machine."""
    table = Names({GPU: "10.1.2.3", OUTSIDE: "203.0.113.5"})
    table.contacts = []
    real, connect, peer = socket.getaddrinfo, socket.socket.connect, socket.socket.getpeername
    meant = WeakKeyDictionary()  # socket -> the invented address that it believes to be connected to

    def getaddrinfo(host, port, *rest, **more):
        host = host.decode() if isinstance(host, bytes) else host
        table.contacts.append(str(host))
        if host not in table and not host[:1].isdigit() and host != "localhost":
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return real(table.get(host, host), port, *rest, **more)

    def connected(self, address):
        table.contacts.append(str(address[0]))
        if address[0].startswith(("10.", "203.0.113.")):
            meant[self] = address
            address = ("127.0.0.1", *address[1:])
        return connect(self, address)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(socket.socket, "connect", connected)
    monkeypatch.setattr(socket.socket, "getpeername", lambda self: meant.get(self) or peer(self))
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.delenv(TRUSTED_HOSTS, raising=False)
    return table


@pytest.fixture
def model_server(names):
    with scripted.Server() as one:
        yield one


def is_this_machine(host):
    address = ipaddress.ip_address(host)
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def way_of(url):
    try:
        return Egress.of().place(url).way.value
    except MedtasksError as refused:
        assert "write a name of letters" in refused.remedy
        return "refused"


def test_each_spelling_of_an_address_is_read_as_clients_read_it(names, monkeypatch):
    """What is permitted leads where the policy says, by the clients that lm-eval asks with, too."""
    monkeypatch.setenv(TRUSTED_HOSTS, "judge.hospital.lan, 10.0.0.0/8")
    assert sum(map(len, ADDRESSES.values())) > 100
    wrong = {url: found for way, urls in ADDRESSES.items() for url in urls if (found := way_of(url)) != way}
    assert not wrong
    for url in (url for url in ADDRESSES["loopback"] if url.startswith("http")):
        for host in (URL(url).host, URL(requests_library.Request("POST", url).prepare().url).host):
            bare = host.rstrip(".")
            assert bare.rpartition(".")[2] == "localhost" or is_this_machine(bare), url
    place = Egress.of(["Permitted.example"]).place("https://permitted.example/v1")
    assert place.way is Permission.ALLOWED and place.permits(CLOSED) and place.permits(OPEN)
    assert not Egress.of().place(f"https://{OUTSIDE}/v1").permits(CLOSED)


def test_without_configuration_only_this_machine_is_trusted(names):
    egress = Egress.of()
    assert egress.place(f"http://{GPU}/v1").way is Permission.OPEN_ONLY
    egress.check(f"http://{GPU}/v1", [OPEN])
    with pytest.raises(MedtasksError) as refused:
        egress.check(f"http://{GPU}/v1", [OPEN, CLOSED])
    for part in ("medhelm_gated", GPU, TRUSTED_HOSTS, f"--allow-host {GPU}"):
        assert part in str(refused.value)
    assert "medhelm_qa" not in str(refused.value)


@pytest.mark.parametrize("addresses", [["10.1.2.3", "203.0.113.5"], []])
def test_a_name_is_trusted_if_all_of_its_addresses_are(names, monkeypatch, addresses):
    monkeypatch.setenv(TRUSTED_HOSTS, "10.0.0.0/8")
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert Egress.of().place(f"http://{GPU}/v1").way is Permission.OPEN_ONLY


@pytest.mark.parametrize("value", ["gpu1/v1", "https://gpu1", "10.0.0.0/99", "300.1.1.1", "*.hospital.lan"])
def test_a_trusted_host_that_cannot_be_read_is_named(monkeypatch, value):
    monkeypatch.setenv(TRUSTED_HOSTS, f"good.lan,{value}")
    with pytest.raises(MedtasksError, match=TRUSTED_HOSTS):
        Egress.of()


@pytest.mark.parametrize("value", ["https://api.openai.com/v1", "api.openai.com:443", "api.openai.com/v1"])
def test_a_host_is_permitted_by_its_name_alone(value):
    with pytest.raises(MedtasksError, match=r"write --allow-host api\.openai\.com"):
        Egress.of([value])


def test_a_proxy_carries_no_text_that_it_could_read(names, monkeypatch):
    monkeypatch.setenv(TRUSTED_HOSTS, "10.0.0.0/8")
    egress = Egress.of(["permitted.example"])
    taken = {
        url: egress.place(url).uses_proxy
        for url in (
            "http://127.0.0.1/v1", f"https://{GPU}/v1", "https://permitted.example/v1",
            "http://permitted.example/v1", f"http://{OUTSIDE}/v1",
        )
    }  # fmt: skip
    assert list(taken.values()) == [False, False, True, False, True]


def requests(*texts):
    turns = [{"role": "user", "content": "Is it?"}]
    return [Request(f"k{n}", "t", f"d{n}", turns, {}, text=text) for n, text in enumerate(texts)]


def outcomes_of(engine, *asked):
    found = {}
    engine.run(ListFeed(asked), lambda request, outcome: found.__setitem__(request.key, outcome))
    return found


def chat(port, host=GPU, **more):
    url = f"http://{host}:{port}/v1/chat/completions"
    return LocalChatCompletion(model="m", base_url=url, max_retries=0, timeout=30, **more)


def test_an_engine_sends_no_text_that_is_not_open_to_a_host_that_nobody_permitted(model_server):
    engine = engine_of(chat(model_server.port))
    unnamed = Request("k2", "t", "d2", [{"role": "user", "content": "Whose?"}], {})
    found = outcomes_of(engine, *requests(OPEN, CLOSED), unnamed)
    assert isinstance(found["k0"], Answer) and len(model_server.asked) == 1
    for key in ("k1", "k2"):
        assert isinstance(found[key], Fault) and found[key].kind is FaultKind.WITHHELD
        assert (found[key].tries, found[key].maybe_paid) == (0, 0)
    with pytest.raises(MedtasksError, match=GPU):
        engine.check([CLOSED])
    assert found["k1"] == engine.prepare(requests(CLOSED)[0])  # so no server counts its tokens


@pytest.mark.parametrize(("trusted", "allowed"), [("10.0.0.0/8", []), (GPU, []), ("", [GPU])])
def test_an_engine_sends_it_where_trusted_or_permitted(model_server, monkeypatch, tmp_path, trusted, allowed):
    monkeypatch.setenv(TRUSTED_HOSTS, trusted)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # would fail
    answers = Answers(tmp_path / "run")
    engine = ApiEngine(chat(model_server.port), egress=Egress.of(allowed).recording(answers.sent))
    found = outcomes_of(engine, *requests(OPEN, CLOSED, CLOSED))
    answers.close()
    assert all(isinstance(outcome, Answer) for outcome in found.values())
    way = Permission.TRUSTED if trusted else Permission.ALLOWED
    noted = [
        (row["host"], row["dataset"], row["open"], row["way"]) for row in rows_in(tmp_path / "run", "sent")
    ]
    assert noted == [(GPU, "medhelm_qa", True, way.value), (GPU, "medhelm_gated", False, way.value)]


def test_threads_lose_no_note(tmp_path):
    names = [[f"suite_{writer}_{number}" for number in range(25)] for writer in range(4)]
    answers = Answers(tmp_path)

    def write(own):
        for name in own:
            answers.sent(AskedServer(GPU, Permission.ALLOWED), Text(name, is_open=False))

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(write, names))
    noted = sorted(
        row["dataset"] for row in rows_in(tmp_path, "sent")
    )  # on the disk while the process writes
    assert noted == sorted(name for own in names for name in own)
    answers.close()


def test_a_name_that_moves_out_of_the_trusted_network_gets_nothing(model_server, names, monkeypatch):
    monkeypatch.setenv(TRUSTED_HOSTS, "10.0.0.0/8")
    egress = Egress.of()
    place = egress.place

    def moved(url):  # between the look at the name and the connection
        found = place(url)
        names[GPU] = "203.0.113.5"
        return found

    engine = ApiEngine(chat(model_server.port), egress=egress)
    monkeypatch.setattr(Egress, "place", lambda self, url: moved(url))
    found = outcomes_of(engine, *requests(CLOSED))
    assert found["k0"].kind is FaultKind.UNREACHABLE and not model_server.asked


def test_open_text_takes_the_proxy_of_the_environment(model_server, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{model_server.port}")
    found = outcomes_of(engine_of(chat(80, OUTSIDE)), *requests(OPEN))
    assert isinstance(found["k0"], Answer)
    assert model_server.asked[0].target == f"http://{OUTSIDE}/v1/chat/completions"


class Guarded(LocalChatCompletion):
    """Asks in a way of its own, as models of other packages do."""

    def generate_until(self, instances, disable_tqdm=False):
        return ["Yes."] * len(instances)

    async def amodel_call(self, *_, **__):
        raise AssertionError("nobody calls it")


def test_models_that_ask_by_a_client_of_their_own_get_what_their_server_may_receive(names):
    engine = engine_of(Guarded(model="m", base_url=f"http://{GPU}/v1"))
    found = outcomes_of(engine, *requests(OPEN, CLOSED))
    assert isinstance(found["k0"], Answer) and found["k1"].kind is FaultKind.WITHHELD


def test_a_disk_that_takes_no_note_stops_the_text(model_server, tmp_path, monkeypatch):
    monkeypatch.setenv(TRUSTED_HOSTS, GPU)
    answers = Answers(tmp_path / "run")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("medtasks_ext.run.store.os.write", full)
    engine = ApiEngine(chat(model_server.port), egress=Egress.of().recording(answers.sent))
    found = outcomes_of(engine, *requests(CLOSED))
    assert isinstance(found["k0"], Fault) and not model_server.asked


def model_flags(port, host=GPU):
    url = f"http://{host}:{port}/v1/chat/completions"
    return ("--model", "local-chat-completions", "--model_args", f"model=m,base_url={url}",
            "--apply_chat_template")  # fmt: skip


def sent(folder):
    rows = [row for one in (folder, folder / "judgements") for row in rows_in(one, "sent")]
    return {(row["host"], row["dataset"], row["way"]) for row in rows}


def test_run_refuses_then_goes_on_with_permission_and_notes_it(
    tasks, names, model_server, medtasks, tmp_path
):
    flags = model_flags(model_server.port)
    command = ("run", "--tasks", "medhelm_qa,medhelm_gated", *flags, "--output_path", "r")
    done = medtasks(*command)
    assert done.code == 2 and "medhelm_gated" in done.err and f"--allow-host {GPU}" in done.err
    assert not model_server.asked and not sent(tmp_path / "r") and names.contacts == []
    done = medtasks.done(*command, "--allow-host", GPU)
    assert sent(tmp_path / "r") == {(GPU, "medhelm_qa", "allowed"), (GPU, "medhelm_gated", "allowed")}
    manifest = Manifest.read(tmp_path / "r")
    assert manifest.allowed_hosts == [GPU] and manifest.sent == {GPU: ["medhelm_gated"]}
    assert f"sent to {GPU} (allowed): text that is not open, of medhelm_gated" in done.err


@pytest.mark.parametrize("host", ["127.0.0.1%2eelsewhere.example", "api.elsewhere.example\\@127.0.0.1"])
def test_run_refuses_a_host_that_clients_read_in_different_ways(tasks, names, model_server, medtasks, host):
    flags = model_flags(model_server.port, host)
    done = medtasks("run", "--tasks", "medhelm_gated", *flags, "--output_path", "r")
    assert done.code == 2 and "names no host that all programs read alike" in done.err
    assert not model_server.asked and names.contacts == []


def test_run_sends_nothing_under_a_local_name_that_leads_elsewhere(tasks, names, model_server, medtasks):
    names["model.localhost"] = "203.0.113.5"
    flags = model_flags(model_server.port, "model.localhost")
    done = medtasks("run", "--tasks", "medhelm_gated", *flags, "--output_path", "r", "--no-preflight")
    assert done.code == 1 and "neither of this machine nor of a trusted network" in done.err, done.text
    assert not model_server.asked


def test_run_sends_open_text_anywhere_and_sample_rows_too(tasks, model_server, medtasks, tmp_path):
    flags = model_flags(model_server.port, OUTSIDE)
    done = medtasks.done("run", "--tasks", "medhelm_qa", *flags, "--output_path", "r")
    assert sent(tmp_path / "r") == {(OUTSIDE, "medhelm_qa", "open text only")}
    assert "that is not open" not in done.err


def test_run_trusts_a_configured_network(tasks, model_server, medtasks, tmp_path, monkeypatch):
    monkeypatch.setenv(TRUSTED_HOSTS, "10.0.0.0/8")
    medtasks.done("run", "--tasks", "medhelm_gated", *model_flags(model_server.port), "--output_path", "r")
    assert sent(tmp_path / "r") == {(GPU, "medhelm_gated", "trusted")}
    assert Manifest.read(tmp_path / "r").allowed_hosts == []


def test_files_for_a_provider_obey_the_same_rule(tasks, names, medtasks, tmp_path):
    command = ("run", "--tasks", "medhelm_gated", "--model", "openai-chat-completions",
               "--model_args", "model=m", "--apply_chat_template", "--to-batch", "q.jsonl")  # fmt: skip
    done = medtasks(*command)
    assert done.code == 2 and "--allow-host api.openai.com" in done.err
    assert not (tmp_path / "q.jsonl").exists()
    assert medtasks(*command, "--allow-host", "api.openai.com").code == 0
    assert (tmp_path / "q.jsonl").is_file()


@pytest.fixture
def far_jury(tmp_path, server):
    """A jury file of one judge, whose server has another name."""

    def write(host=GPU):
        judge = {"name": "one", "model": "one", "base_url": server.url.replace("127.0.0.1", host)}
        path = tmp_path / "far.yaml"
        path.write_text(yaml.safe_dump({"judges": [judge]}))
        return path

    return write


def test_judge_refuses_then_goes_on_with_the_permission_and_notes_it(names, run, far_jury, server, medtasks):
    folder, command = run("qa", "gated"), ("judge", "--jury", far_jury())
    assert "warning: " in (dry := medtasks(*command, "--dry-run")).err and dry.code == 0
    names.contacts.clear()
    done = medtasks(*command)
    assert done.code == 2 and "medhelm_gated" in done.err and not server.asked and names.contacts == []
    done = medtasks.done(*command, "--allow-host", GPU)
    assert sent(folder) == {(GPU, "medhelm_qa", "allowed"), (GPU, "medhelm_gated", "allowed")}
    assert Manifest.read(folder).allowed_hosts == [GPU]
    assert f"sent to {GPU} (allowed)" in done.err


def test_judge_trusts_a_configured_host_and_no_other(names, run, far_jury, medtasks, monkeypatch):
    monkeypatch.setenv(TRUSTED_HOSTS, GPU)
    folder = run("gated")
    assert medtasks("judge", "--jury", far_jury(OUTSIDE)).code == 2
    assert medtasks("judge", "--jury", far_jury()).code == 0
    assert sent(folder) == {(GPU, "medhelm_gated", "trusted")}


@register_model("words-completions")
class WordsCompletions(LocalCompletionsAPI):
    """Continues a text behind an endpoint; its tokenizer is here."""

    def __init__(self, **arguments):
        super().__init__(tokenizer_backend=None, **arguments)
        self.tokenizer = Words()


def test_the_contamination_probe_obeys_the_same_rule(
    names, model_server, medtasks, data_dir, monkeypatch, tmp_path
):
    task = "bridge_chip_ctc"
    url = f"http://{GPU}:{model_server.port}/v1/completions"
    command = ("study", "contamination", "--model", "words-completions", "--model_args",
               f"model=m,base_url={url}", "--tasks", task, "--output_path", "p")  # fmt: skip
    rows = [sft_row(n, "word " * 60 + str(n), "clinical trial criterion: 年龄") for n in range(6)]
    (data_dir / "bridge").mkdir()
    (data_dir / "bridge" / "CHIP-CTC.SFT.json").write_text(json.dumps(rows, ensure_ascii=False))
    done = medtasks(*command)
    assert done.code == 2 and task in done.err and not model_server.asked and names.contacts == []
    monkeypatch.setenv(TRUSTED_HOSTS, GPU)
    medtasks.done(*command)
    assert sent(tmp_path / "p") == {(GPU, task, "trusted")}


REFERRAL = "medhelm_hospice_referral"


@pytest.fixture
def referral(data_dir, built_tasks):
    """Loads the private task as lm-eval does, with the arguments of its model."""
    rows = [{"prompt": "Refer?", "context": f"note {n}", "label": "A"} for n in range(3)]
    write_jsonl(data_dir / "medhelm" / "hospice_referral" / "test.jsonl", rows)

    def load(**metadata):
        manager = TaskManager(include_defaults=False, include_path=str(built_tasks), metadata=metadata)
        return manager.load([REFERRAL])["tasks"][REFERRAL]

    return load


def test_plain_lm_eval_sends_no_text_to_a_server_that_nobody_permitted(names, referral, monkeypatch):
    with pytest.raises(MedtasksError, match=f"{REFERRAL} is not open to everyone") as caught:
        referral(model="m", base_url=f"http://{GPU}/v1/chat/completions")
    assert TRUSTED_HOSTS in caught.value.remedy and "medtasks run" in caught.value.remedy
    assert names.contacts == []
    assert referral(base_url="http://localhost:8000/v1").dataset
    assert referral(base_url=f"http://{GPU}/v1", data="sample").dataset
    monkeypatch.setenv(TRUSTED_HOSTS, GPU)
    assert referral(base_url=f"http://{GPU}/v1").dataset


@pytest.mark.parametrize(
    ("model", "host"),
    [("openai-chat-completions", "api.openai.com"), ("anthropic-chat-completions", "api.anthropic.com")],
)
def test_plain_lm_eval_sends_no_text_to_the_service_of_a_model(names, referral, monkeypatch, model, host):
    monkeypatch.setattr("sys.argv", ["lm_eval", "--model", model, "--tasks", REFERRAL])
    with pytest.raises(MedtasksError, match=f"would be sent to {host}"):
        referral(model="m")
    monkeypatch.setattr("sys.argv", ["lm_eval", "--model", "hf", "--tasks", REFERRAL])
    assert referral(pretrained="m").dataset


@pytest.mark.parametrize("concurrent", [1, 2])
def test_plain_lm_eval_sends_nothing_where_a_name_leads_elsewhere_by_then(
    names, referral, model_server, monkeypatch, concurrent
):
    names["model.localhost"] = "127.0.0.1"
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # would fail
    base_url = f"http://model.localhost:{model_server.port}/v1/chat/completions"
    assert referral(base_url=base_url).dataset
    model = LocalChatCompletion(model="m", base_url=base_url, num_concurrent=concurrent, max_retries=1)
    asked = [{"role": "user", "content": "Refer?"}]
    instance = Instance("generate_until", {}, (JsonChatStr(json.dumps(asked)), {"max_gen_toks": 5}), 0)
    assert model.generate_until([instance]) == ["Yes."]
    names["model.localhost"] = "203.0.113.5"
    with pytest.raises(Exception, match="neither of this machine nor of a trusted network"):
        model.generate_until([instance])
    assert len(model_server.asked) == 1


def test_plain_lm_eval_refuses_a_host_that_clients_read_in_different_ways(names, referral):
    for host in ("127.0.0.1%2eelsewhere.example", "api.elsewhere.example\\@127.0.0.1"):
        with pytest.raises(MedtasksError, match="names no host that all programs read alike"):
            referral(base_url=f"http://{host}:9777/v1/chat/completions")
    assert names.contacts == []
