"""Prints state and id of all tasks that the service lists, from several pages."""

import os

import tes

client = tes.HTTPClient(os.environ["CLOUDSHARE_ADDR"], token=open(os.environ["CLOUDSHARE_API_TOKEN_FILE"]).read().strip())
token = None
while True:
    page = client.list_tasks(page_size=4, page_token=token)
    for task in page.tasks:
        print(task.state, task.id)
    token = page.next_page_token
    if not token:
        break
