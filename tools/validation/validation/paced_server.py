"""A server of completions that computes nothing and sends each token at a time that is known: what its clients say is then theirs alone."""

import contextlib
import http.server
import json
import threading
import time

VOCABULARY = 97  # Of its tokens; any model has as many.


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        answers = {"/health": {}, "/v1/models": {"data": [{"id": "model"}]}, "/version": {"version": "paced"}}
        body = json.dumps(answers.get(self.path, {})).encode()
        self.send_response(200 if self.path in answers else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def event(self, text):
        data = f"data: {text}\n\n".encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def do_POST(self):
        begun = time.monotonic()
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        tokens, token = request.get("max_tokens", 1), len(request["prompt"]) % VOCABULARY
        for index in range(tokens):
            # By the clock and not by the token before, so that no delay adds up.
            time.sleep(max(0.0, begun + self.server.first_s + index * self.server.token_s - time.monotonic()))
            token = (7 * token + 3) % VOCABULARY
            finish = "length" if index + 1 == tokens else None
            self.event(json.dumps({"choices": [{"index": 0, "text": " x", "token_ids": [token], "finish_reason": finish}]}))
        self.event(json.dumps({"choices": [], "usage": {"prompt_tokens": len(request["prompt"]), "completion_tokens": tokens}}))
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # A client that keeps its connection may leave whenever it likes.


@contextlib.contextmanager
def serving(first_s, token_s):
    """The address of a server that sends the first token `first_s` seconds after the request has come, and the next ones `token_s` apart."""
    with Server(("127.0.0.1", 0), Handler) as server:
        server.first_s, server.token_s = first_s, token_s
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
