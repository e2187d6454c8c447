"""A server of buckets for a test: moto, on a free port of the loopback interface.

It makes the bucket `team` and a user with a key, and from then on checks the signature and the
rights of each request. It prints `PORT KEY SECRET`, and ends with its input.
"""

import json
import os
import sys

PREPARING = 4
"""Requests that come without a valid key: a user, its rights, its key, a bucket."""

os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = str(PREPARING)
os.environ["AWS_ACCESS_KEY_ID"] = os.environ["AWS_SECRET_ACCESS_KEY"] = "preparing"

import boto3  # noqa: E402  It reads the variables when it is imported.
from moto.server import ThreadedMotoServer  # noqa: E402


def main() -> None:
    """Serves until the input ends."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    port = server.get_host_and_port()[1]
    there = {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "us-east-1"}
    iam = boto3.client("iam", **there)
    iam.create_user(UserName="ann")
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
    iam.put_user_policy(UserName="ann", PolicyName="all", PolicyDocument=json.dumps(policy))
    key = iam.create_access_key(UserName="ann")["AccessKey"]
    boto3.client("s3", **there).create_bucket(Bucket="team")
    print(port, key["AccessKeyId"], key["SecretAccessKey"], flush=True)
    sys.stdin.read()
    server.stop()


main()
