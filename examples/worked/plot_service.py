"""
How long does an answer take?
=============================

A model answers requests of one row. How long does a client wait, alone and with seven others?
The server of this example is the one of Python's standard library, so that nothing has to be
installed; :doc:`/serving` has the same with FastAPI.
"""

# %%
# A model in a file. ``load_model`` reads it without scikit-learn.
import http.client
import json
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq

import gramian
from gramian.model import load_model

table = pq.read_table(gramian.data.sample_path("california_housing"))
train, test = (table.filter(np.asarray(table["split"]) == k).drop_columns("split") for k in (0, 1))
settings = dict(lengthscale=2.0, penalty=1e-4, landmarks=1000, random_state=0)
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "houses.model"
gramian.KernelRidge("gaussian", **settings).fit(train, "target").save(path)
model = load_model(path)
print(f"{path.stat().st_size / 1e3:.0f} kB")

# %%
# A request is a list of rows by name, as JSON. A row that does not fit the model gets status 422,
# with the message of the error.


class Handler(BaseHTTPRequestHandler):
    """Answer each request with the predictions of its rows."""

    protocol_version = "HTTP/1.1"  # keeps connections open
    disable_nagle_algorithm = True

    def do_POST(self):
        """Predict the rows of the body."""
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            status, answer = 200, model.predict(rows)[:, 0].tolist()
        except (TypeError, ValueError) as error:
            status, answer = 422, str(error)
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Print nothing."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()


def ask(connection, rows):
    """Send rows, and return status and answer."""
    connection.request("POST", "/predict", json.dumps(rows))
    response = connection.getresponse()
    return response.status, json.loads(response.read())


rows = test.drop_columns("target").slice(0, 500).to_pylist()
connection = http.client.HTTPConnection(*server.server_address)
print(ask(connection, rows[:2]))
print(ask(connection, [{"median_income": 3.0}]))
connection.close()

# %%
# 500 requests of one client, and 500 of eight clients at once.


def waits(rows):
    """Return the milliseconds that one client waits for each of its rows."""
    connection = http.client.HTTPConnection(*server.server_address)
    milliseconds = []
    for row in rows:
        start = time.perf_counter()
        ask(connection, [row])
        milliseconds.append((time.perf_counter() - start) * 1e3)
    connection.close()
    return milliseconds


measured = {}
for clients in (1, 8):
    before = time.process_time()
    with ThreadPoolExecutor(clients) as pool:
        parts = pool.map(waits, [rows[k::clients] for k in range(clients)])
        measured[clients] = np.concatenate(list(parts))
    half, most = np.percentile(measured[clients], [50, 99])
    used = (time.process_time() - before) / len(rows) * 1e3
    print(f"{clients} clients: half within {half:.1f} ms, 99 % within {most:.1f} ms,", end=" ")
    print(f"{used:.1f} CPU ms a request, with the client")

# %%
figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
for clients, milliseconds in measured.items():
    share = np.arange(1, len(milliseconds) + 1) / len(milliseconds)
    axes.plot(np.sort(milliseconds), share, label=f"{clients} clients")
axes.set(xscale="log", xlabel="milliseconds", ylabel="share of requests answered")
axes.legend()
plt.show()

# %%
# How much of it is the model? One row in a dict, without a server.
start = time.perf_counter()
for row in rows:
    model.predict(row)
print(f"{(time.perf_counter() - start) / len(rows) * 1e3:.2f} ms a prediction")
server.shutdown()
server.server_close()
folder.cleanup()

# %%
# Processes, threads, a container, and times next to other libraries: :doc:`/serving`.
