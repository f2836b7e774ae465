"""A server of completions that computes nothing and sends each token at a time that is known: what its clients say is then theirs alone."""

import contextlib
import http.server
import json
import threading
import time

VOCABULARY = 97  # Of its tokens; any model has as many.


class StreamHandler(http.server.BaseHTTPRequestHandler):
    """Answers with JSON, or with a stream of events; the fake server of the tests does too."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def asked(self):
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_path(self, answers):
        self.answer(200 if self.path in answers else 404, answers.get(self.path, {"error": {"message": "no such path"}}))

    def begin_events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def event(self, text):
        data = f"data: {text}\n\n".encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def end_events(self):
        self.wfile.write(b"0\r\n\r\n")


class Handler(StreamHandler):
    def do_GET(self):
        self.answer_path({"/health": {}, "/v1/models": {"data": [{"id": "model"}]}, "/version": {"version": "paced"}})

    def do_POST(self):
        begun = time.monotonic()
        request = self.asked()
        self.begin_events()
        tokens, token = request.get("max_tokens", 1), len(request["prompt"]) % VOCABULARY
        for index in range(tokens):
            # By the clock and not by the token before, so that no delay adds up.
            time.sleep(max(0.0, begun + self.server.first_s + index * self.server.token_s - time.monotonic()))
            token = (7 * token + 3) % VOCABULARY
            finish = "length" if index + 1 == tokens else None
            self.event(json.dumps({"choices": [{"index": 0, "text": " x", "token_ids": [token], "finish_reason": finish}]}))
        self.event(json.dumps({"choices": [], "usage": {"prompt_tokens": len(request["prompt"]), "completion_tokens": tokens}}))
        self.event("[DONE]")
        self.end_events()


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
