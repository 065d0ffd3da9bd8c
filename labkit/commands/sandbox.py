"""A place of its own for what a test or a rerun starts: no file of the learner is read or written.

variables("a/folder")["LABKIT_HOME"]    # 'a/folder/labkit_home'
"""

import os
import pathlib
import sys

FOLDERS = (
    "HOME USERPROFILE XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME IPYTHONDIR JUPYTER_CONFIG_DIR "
    "JUPYTER_DATA_DIR JUPYTER_RUNTIME_DIR JUPYTERLAB_SETTINGS_DIR JUPYTERLAB_WORKSPACES_DIR "
    "LABKIT_HOME LABKIT_WORK"
).split()
QUIET_KERNEL = '{"IPKernelApp": {"log_level": 40}}'  # no note on transport among the outputs
LAB = {  # what every JupyterLab of ours is started with: our settings, kernels of this Python
    "JUPYTER_CONFIG_PATH": str(pathlib.Path(__file__).with_name("jupyter")),
    "JUPYTER_PREFER_ENV_PATH": "1",
    "JUPYTER_PLATFORM_DIRS": "1",
}


def variables(folder: str | pathlib.Path) -> dict[str, str]:
    """This process's variables, with every folder of JupyterLab, IPython and labkit in `folder`."""
    places = {name: str(pathlib.Path(folder, name.lower())) for name in FOLDERS}
    profile = pathlib.Path(places["IPYTHONDIR"], "profile_default")
    for place in (*places.values(), str(profile)):
        pathlib.Path(place).mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.json").write_text(QUIET_KERNEL)
    # A font list takes seconds to make: kept with the environment, as it belongs to it.
    fonts = {"MPLCONFIGDIR": str(pathlib.Path(sys.prefix) / "var" / "matplotlib")}
    return {**os.environ, **LAB, **fonts, **places}


def for_tests(folder: str | pathlib.Path) -> dict[str, str]:
    """The same, but that each kernel keeps its answers to itself, in memory."""
    return {name: value for name, value in variables(folder).items() if name != "LABKIT_HOME"}
