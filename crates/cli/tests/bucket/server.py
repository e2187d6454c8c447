"""A server of buckets for a test: moto, on a free port of the loopback interface.

It makes the bucket `team` and a user with a key, and from then on checks the signature and the
rights of each request. It prints `PORT KEY SECRET`, and ends with its input. With `--sdk`, it
serves clients with the libraries of AWS, which sign encoded names. Without, it serves curl.
"""

import json
import os
import sys
from urllib.parse import SplitResult, quote, unquote

PREPARING = 4
"""Requests that come without a valid key: a user, its rights, its key, a bucket."""

os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = str(PREPARING)
os.environ["AWS_ACCESS_KEY_ID"] = os.environ["AWS_SECRET_ACCESS_KEY"] = "preparing"

import boto3  # noqa: E402  It reads the variables when it is imported.
from botocore import auth  # noqa: E402
from botocore.auth import S3SigV4Auth, SigV4Auth  # noqa: E402
from moto.s3.responses import S3Response  # noqa: E402
from moto.server import ThreadedMotoServer  # noqa: E402


def sign_as_aws() -> None:
    """Signs encoded names, whether the request has them encoded or not."""
    plain = SigV4Auth._canonical_query_string_url

    def query(self: SigV4Auth, url: SplitResult) -> str:
        return plain(self, url._replace(query=url.query.replace("/", "%2F")))

    SigV4Auth._canonical_query_string_url = query
    # Java's library signs this header, too.
    auth.SIGNED_HEADERS_BLACKLIST.remove("user-agent")
    S3SigV4Auth._normalize_url_path = lambda _, path: quote(unquote(path), safe="/~")


def name_results() -> None:
    """Names the answer to a finished upload as S3 does. Moto ends the name with `Response`."""
    plain = S3Response.serialized

    def named(self: S3Response, result: object) -> tuple[int, dict[str, str], str]:
        status, headers, body = plain(self, result)
        return status, headers, body.replace("MultipartUploadResponse", "MultipartUploadResult")

    S3Response.serialized = named


def main() -> None:
    """Serves until the input ends."""
    if "--sdk" in sys.argv:
        sign_as_aws()
    name_results()
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
