"""Sends three uploads to `upload.py`. The name of the second one leaves the directory."""

import http.client
import os
import time

while not os.path.exists("port"):
    time.sleep(0.01)
with open("port", encoding="ascii") as file:
    PORT = int(file.read())
for name, body in [
    ("photo.txt", "a photo"),
    ("../page.py", "print('not an upload')"),
    ("notes.txt", "some notes"),
]:
    connection = http.client.HTTPConnection("127.0.0.1", PORT)
    headers = {"Authorization": "Bearer 0123456789abcdef"}
    connection.request("POST", f"/?name={name}", body, headers)
    print(name, connection.getresponse().status)
    connection.close()
