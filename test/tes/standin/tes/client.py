"""The client; see the package's header."""

import requests

from .models import ListTasksResponse, Task


class HTTPClient:
    """HTTPClient speaks to the service at URL/ga4gh/tes/v1, with a token or a user's password."""

    def __init__(self, url, timeout=10, user=None, password=None, token=None):
        self.tasks = url.rstrip("/") + "/ga4gh/tes/v1/tasks"
        self.timeout = timeout
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.auth = None if token or user is None else (user, password or "")

    def create_task(self, task):
        """create_task returns the new task's id."""
        if not isinstance(task, Task):
            raise TypeError("a tes.Task is needed")
        return self._ask("POST", "", json=task.as_dict())["id"]

    def get_task(self, task_id, view="BASIC"):
        """get_task returns a task; its parts are as JSON has them."""
        return known(Task, self._ask("GET", f"/{task_id}", params={"view": view}))

    def list_tasks(self, view="MINIMAL", page_size=None, page_token=None):
        """list_tasks returns a page of tasks."""
        params = {"view": view, "page_size": page_size, "page_token": page_token}
        page = self._ask("GET", "", params=params)
        page["tasks"] = [known(Task, each) for each in page.get("tasks") or []]
        return known(ListTasksResponse, page)

    def cancel_task(self, task_id):
        """cancel_task asks for a task's end."""
        self._ask("POST", f"/{task_id}:cancel", json={})

    def _ask(self, method, path, **more):
        answer = requests.request(
            method, self.tasks + path, headers=self.headers, auth=self.auth, timeout=self.timeout, **more
        )
        if not answer.ok:  # with what the service says, which requests' own error leaves out
            raise requests.HTTPError(f"{answer.status_code} for {answer.url}: {answer.text}", response=answer)
        return answer.json()


def known(model, values):
    """known makes a model of what it has fields for: a newer service may say more."""
    return model(**{k: v for k, v in values.items() if k in model.fields})
