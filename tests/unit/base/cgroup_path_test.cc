// Paths that container runtimes create, from their sources and from machines that run them.
#include "base/cgroup_path.h"

#include <catch2/catch.hpp>

#include <vector>

using namespace flamewire;

namespace {

const std::string id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string other = std::string(64, 'f');
const std::string uid = "7e5f5ac4-1af0-4ae7-8dd2-3a3d2d6f5d2b";
const std::string uid_in_slice = "7e5f5ac4_1af0_4ae7_8dd2_3a3d2d6f5d2b";
const std::string static_uid = "a4f1d1d8a4c5c1a3f3e6a8a1b2c3d4e5";

}  // namespace

TEST_CASE("containers with numeric ids") {
    for (const std::string& path : std::vector<std::string>{
             "/docker/" + id,                                                          // Docker, cgroupfs
             "/system.slice/docker-" + id + ".scope",                                  // Docker, systemd
             "/user.slice/user-1000.slice/user@1000.service/docker-" + id + ".scope",  // rootless
             "/docker/" + other + "/docker/" + id,                                     // Docker in Docker
             "/docker/" + id + "/init.scope",                                          // systemd in Docker
             "/machine.slice/libpod-" + id + ".scope/container",                       // Podman
             "/libpod_parent/libpod-" + id,                                            // Podman, cgroupfs
             "/system.slice/web.service/libpod-payload-" + id,                         // Podman, split
             "/system.slice/nerdctl-" + id + ".scope",                                 // nerdctl
             "/default/" + id,                                                         // containerd
             "/../../crio-" + id + ".scope",                                           // from another cgroup namespace
             "/ecs/8f3d2c1b/" + id,                                                    // ECS
             "/lxc.payload.outer/system.slice/docker-" + id + ".scope",                // Docker in LXC
             "/machine.slice/machine-outer.scope/payload/system.slice/docker-" + id + ".scope",
         }) {
        CAPTURE(path);
        CHECK(parse_cgroup_path(path) == CgroupPath{id, ""});
    }
}

TEST_CASE("pods of Kubernetes") {
    for (const std::string& path : std::vector<std::string>{
             "/kubepods/burstable/pod" + uid + "/" + id,
             "/kubepods/pod" + uid + "/" + id,
             "/kubepods.slice/kubepods-pod" + uid_in_slice + ".slice/cri-containerd-" + id + ".scope",
             "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + uid_in_slice + ".slice/crio-" + id +
                 ".scope",
             "/system.slice/containerd.service/kubepods-burstable-pod" + uid_in_slice + ".slice:cri-containerd:" + id,
             // kind: the node is itself a container
             "/docker/" + other + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + uid_in_slice +
                 ".slice/cri-containerd-" + id + ".scope",
             "/kubepods.slice/kubepods-pod" + uid_in_slice + ".slice/docker-" + other + ".scope/docker/" + id,
         }) {
        CAPTURE(path);
        CHECK(parse_cgroup_path(path) == CgroupPath{id, uid});
    }
    CHECK(parse_cgroup_path("/kubepods/burstable/pod" + static_uid + "/" + id) == CgroupPath{id, static_uid});
    CHECK(parse_cgroup_path("/kubepods.slice/kubepods-pod" + uid_in_slice + ".slice") == CgroupPath{"", uid});
    for (const std::string& no_uid : std::vector<std::string>{
             "/kubepods/pod" + uid.substr(1) + "/x", "/kubepods/xpod" + uid, "/kubepods/pod" + uid + "0",
             "/kubepods/pod7e5f5ac4-1af0-4ae7-8dd2x3a3d2d6f5d2b", std::string("/pod"), std::string("/kubepods/pods")}) {
        CAPTURE(no_uid);
        CHECK(parse_cgroup_path(no_uid).pod_uid.empty());
    }
}

TEST_CASE("pods of Podman") {
    CHECK(parse_cgroup_path("/machine.slice/machine-libpod_pod_" + other + ".slice/libpod-" + id + ".scope") ==
          CgroupPath{id, other});
}

TEST_CASE("containers with names") {
    const auto container = [](std::string_view path) { return parse_cgroup_path(path).container_id; };
    CHECK(container("/lxc/web") == "web");
    CHECK(container("/lxc/101/ns/init.scope") == "101");
    CHECK(container("/lxc.payload/web/system.slice/cron.service") == "web");
    CHECK(container("/lxc.payload.web/system.slice/ssh.service") == "web");
    CHECK(container("/lxc.monitor.web").empty());
    CHECK(container("/machine.slice/machine-debian.scope/payload") == "debian");
    CHECK(container("/machine.slice/machine-my\\x2dbox.scope/payload/init.scope") == "my-box");
    CHECK(container("/machine.slice/machine-debian.scope/supervisor").empty());
    CHECK(container("/machine.slice/systemd-nspawn@deb\\x2d12.service/payload/system.slice/a.service") == "deb-12");
    CHECK(container("/machine.slice/systemd-nspawn@debian.service/supervisor").empty());
    CHECK(container("/machine.slice/machine-qemu\\x2d1\\x2dvm.scope").empty());
}

TEST_CASE("paths without a container") {
    for (const std::string& path : std::vector<std::string>{
             std::string(), std::string("/"), std::string("///"), std::string("/user.slice/user-1000.slice"),
             std::string("/system.slice/docker.service"), std::string("/lxc"), std::string("/lxc.payload."),
             std::string("/machine.slice/machine-.scope"), std::string("/machine.slice/machine-x\\x2"),
             "/docker/" + id + "0", "/" + id.substr(1), "/machine.slice/libpod-conmon-" + id + ".scope",
             "/crio-conmon-" + id + ".scope"}) {
        CAPTURE(path);
        CHECK(parse_cgroup_path(path) == CgroupPath{});
    }
    CHECK(parse_cgroup_path("/machine.slice/machine-x\\x2.scope").container_id == "x\\x2");  // not an escape sequence
}

TEST_CASE("containers as users name them") {
    CHECK(names_id(id, id));
    CHECK(names_id(id.substr(0, 12), id));
    CHECK(names_id("0123", id));
    CHECK_FALSE(names_id("012", id));
    CHECK_FALSE(names_id("", ""));
    CHECK_FALSE(names_id("", id));
    CHECK_FALSE(names_id(id + "0", id));
    CHECK(names_id("7e5f5ac4", uid));
    CHECK(names_id("web", "web"));
    CHECK_FALSE(names_id("frontend", "frontend-of-the-shop-in-the-old-town"));  // a name cannot be abbreviated
}

TEST_CASE("control groups as users name them") {
    CHECK(names_cgroup("/system.slice", "/system.slice/cron.service"));
    CHECK(names_cgroup("system.slice/", "/system.slice/cron.service"));
    CHECK(names_cgroup("/system.slice/cron.service", "/system.slice/cron.service"));
    CHECK_FALSE(names_cgroup("/system.slice/cron", "/system.slice/cron.service"));
    CHECK_FALSE(names_cgroup("/system.slice/cron.service/x", "/system.slice/cron.service"));
    CHECK(names_cgroup("/", "/a"));
    CHECK_FALSE(names_cgroup("/", ""));
    CHECK_FALSE(names_cgroup("", "/a"));
}
