"""Searches asked one by one, packet by packet: for what the lab does not keep, ids, states and headers. Times are of the same clock as `time.monotonic`."""

import http.client
import json
import threading
import time
import urllib.parse


class SearchResponse:
    """What came of one search."""

    def __init__(self, word):
        self.word, self.status, self.headers = word, 0, {}
        self.sent = self.first = self.last = self.done = None
        self.ids, self.states, self.end, self.faults = {}, {}, None, []

    def take(self, packet, due, now):
        """Notes a packet, the `due`-th."""
        if packet["seq"] != due:
            self.faults.append(f"packet {packet['seq']} came where {due} was due")
        if self.end:
            self.faults.append("a packet came after the last")
        if packet["kind"] == "results":
            self.first, self.last = self.first or now, now
            ids = self.ids.setdefault(packet["provider"], [])
            ids += [feature["id"] for feature in packet["features"]]
        elif packet["kind"] == "provider":
            self.states[packet["provider"]] = packet
        elif packet["kind"] == "complete":
            self.end, self.done = packet, now


def ask(port, word, patience=60, **members):
    """Asks for a word and reads to the end; a refusal is an answer without an end."""
    answer = SearchResponse(word)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patience)
    answer.sent = time.monotonic()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {word}"}
    connection.request("POST", "/searches", json.dumps({"keywords": word, **members}), headers)
    response = connection.getresponse()
    answer.status, answer.headers, body = response.status, dict(response.headers), response.read()
    if answer.status != 202:
        answer.done = time.monotonic()
        connection.close()
        return answer
    connection.request("GET", urllib.parse.urlsplit(json.loads(body)["packets"]).path)
    response, due = connection.getresponse(), 0
    while line := response.readline():
        if line.startswith(b"data: "):
            answer.take(json.loads(line[6:]), due, time.monotonic())
            due += 1
    connection.close()
    if answer.end is None:
        answer.faults.append("the stream ended without a last packet")
    elif answer.end["packets"] != due:
        answer.faults.append(f"the last packet counts {answer.end['packets']} and {due} came")
    return answer


def ask_at_once(port, words, **members):
    """Many at once, each from a thread of its own."""
    answers = [None] * len(words)

    def one(n):
        answers[n] = ask(port, words[n], **members)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(len(words))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answer for answer in answers if answer]


class Probe(threading.Thread):
    """Asks now and then beside a load, until stopped."""

    def __init__(self, port, tag, every, **members):
        super().__init__(daemon=True)
        self.port, self.tag, self.every, self.members = port, tag, every, members
        self.answers, self.asked, self.stopped = [], 0, threading.Event()

    def run(self):
        while not self.stopped.wait(self.every):
            word, self.asked = f"{self.tag}{self.asked}", self.asked + 1
            try:
                self.answers.append(ask(self.port, word, **self.members))
            except (OSError, http.client.HTTPException) as e:
                # What came of it is not known, and counts against the server.
                answer = SearchResponse(word)
                answer.faults.append(f"the connection broke: {e}")
                self.answers.append(answer)

    def end(self):
        """What it was answered; waits for what it is asking."""
        self.stopped.set()
        self.join()
        return self.answers


class Probes:
    """Some that ask at the same time, each one search after the other."""

    def __init__(self, count, port, tag, every, **members):
        self.each = [Probe(port, f"{tag}{n}x", every, **members) for n in range(count)]

    def start(self):
        for probe in self.each:
            probe.start()

    def end(self):
        """What all were answered."""
        for probe in self.each:
            probe.stopped.set()
        return [answer for probe in self.each for answer in probe.end()]
