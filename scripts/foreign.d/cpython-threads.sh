# what: CPython's own tests: test_threading test_threading_local test_asyncio test_selectors test_concurrent_futures
# needs: /usr/lib/python3.11/test/test_os.py
# compare: tests
# limit: 280
/usr/bin/python3.11 -m test -v -u none --timeout 900 test_threading test_threading_local test_asyncio test_selectors test_concurrent_futures
