"""The parts of a task, as GA4GH TES 1.1 names their fields; see the package's header."""


class Model:
    """Model has the fields that its class names, None where they are not set."""

    fields = ()

    def __init__(self, **values):
        unknown = set(values) - set(self.fields)
        if unknown:
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        for field in self.fields:
            setattr(self, field, values.get(field))

    def __setitem__(self, field, value):
        """Snakemake sets a task's resources so."""
        if field not in self.fields:
            raise KeyError(field)
        setattr(self, field, value)

    def as_dict(self):
        """as_dict returns the fields that are set, for JSON."""
        return {f: plain(getattr(self, f)) for f in self.fields if getattr(self, f) is not None}

    def __repr__(self):
        return f"{type(self).__name__}({self.as_dict()})"


def plain(value):
    """plain returns what JSON has for a value of a field."""
    if isinstance(value, Model):
        return value.as_dict()
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


class Input(Model):
    fields = ("name", "description", "url", "path", "type", "content", "streamable")


class Output(Model):
    fields = ("name", "description", "url", "path", "path_prefix", "type")


class Resources(Model):
    fields = ("cpu_cores", "preemptible", "ram_gb", "disk_gb", "zones", "backend_parameters")


class Executor(Model):
    fields = ("image", "command", "workdir", "stdin", "stdout", "stderr", "env", "ignore_error")


class Task(Model):
    fields = (
        "id", "state", "name", "description", "inputs", "outputs", "resources", "executors",
        "volumes", "tags", "logs", "creation_time",
    )  # fmt: skip


class ListTasksResponse(Model):
    fields = ("tasks", "next_page_token")
