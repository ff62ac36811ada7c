"""Settings of Open MPI whose names change between its versions: 5 starts ranks by PRRTE, which has parameters of its own,
and 6 gives some of these new names. A name of another version does nothing, or is complained about."""
import re
import subprocess


def major_version(mpirun="mpirun"):
    """Of the Open MPI that this mpirun belongs to; None if it is another MPI, or there is none."""
    try:
        done = subprocess.run([mpirun, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    # mpirun calls itself Open MPI, mpiexec OpenRTE.
    found = re.search(r"\((?:Open MPI|OpenRTE)\) (\d+)\.", done.stdout)
    return int(found[1]) if found else None


def unbound(version):
    """Ranks may run on any core."""
    name = {4: "OMPI_MCA_hwloc_base_binding_policy", 5: "PRTE_MCA_hwloc_default_binding_policy", 6: "PRTE_MCA_bindto"}
    return {name[known(version)]: "none"}


def oversubscribed(version):
    """More ranks than cores."""
    if version < 5:
        return {"OMPI_MCA_rmaps_base_oversubscribe": "1"}
    return mapped(version, ":oversubscribe")


def mapped(version, policy):
    """Where ranks go, as "slot"."""
    name = {4: "OMPI_MCA_rmaps_base_mapping_policy", 5: "PRTE_MCA_rmaps_default_mapping_policy", 6: "PRTE_MCA_mapby"}
    return {name[known(version)]: policy}


def on_hosts(version, hostfile, temporary, agent, network):
    """Several hosts: who they are, a folder for mpirun's files, what stands in for ssh, the network between them."""
    if version < 5:
        return {"OMPI_MCA_orte_default_hostfile": hostfile, "OMPI_MCA_orte_tmpdir_base": temporary,
                "OMPI_MCA_plm": "rsh", "OMPI_MCA_plm_rsh_agent": agent, "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
                "OMPI_MCA_oob_tcp_if_include": network, "OMPI_MCA_btl_tcp_if_include": network,
                "OMPI_MCA_orte_leave_session_attached": "1"}
    return {"PRTE_MCA_prte_default_hostfile": hostfile, "PRTE_MCA_prte_tmpdir_base": temporary,
            "PRTE_MCA_plm": "ssh", "PRTE_MCA_plm_ssh_agent": agent, "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
            "PRTE_MCA_prte_if_include": network, "OMPI_MCA_btl_tcp_if_include": network}


def without_single_copy(version):
    """No rank reads another's memory."""
    if version < 5:
        return {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
    return {"OMPI_MCA_smsc": "^cma,xpmem,knem"}


def shared_memory(version):
    """The name of the transport between ranks of a host."""
    return "vader" if version < 5 else "sm"


def known(version):
    return min(max(version, 4), 6)
