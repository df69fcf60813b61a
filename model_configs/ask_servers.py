"""Send a file of requests to servers with Ray Data; results are written as they come.

python ask_servers.py requests.jsonl results.jsonl http://localhost:8000 [another server ...]
"""

import http.client
import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import ray

requests, results, *servers = sys.argv[1:]


def answer(line):
    """The line of results of a request."""
    request = json.loads(line)
    body = json.dumps(request["body"]).encode()
    post = Request(random.choice(servers) + request["url"], body, {"Content-Type": "application/json"})
    result = {"custom_id": request["custom_id"], "response": None, "error": None}
    try:
        with urlopen(post, timeout=3600) as reply:
            result["response"] = {"status_code": reply.status, "body": json.load(reply)}
    except HTTPError as error:
        body = {"error": {"message": error.read().decode(errors="replace")}}
        result["response"] = {"status_code": error.code, "body": body}
    except (OSError, ValueError, http.client.HTTPException) as error:
        result["error"] = {"code": "no_reply", "message": str(error)}
    return json.dumps(result)


def answers(batch):
    """The lines of results of a batch, asked over 64 connections."""
    with ThreadPoolExecutor(64) as connections:
        return {"line": list(connections.map(answer, batch["text"]))}


ray.init()
lines = ray.data.read_text(requests).repartition(64)
with Path(results).open("a") as file:
    for row in lines.map_batches(answers, num_cpus=0.25).iter_rows():
        file.write(row["line"] + "\n")
        file.flush()
