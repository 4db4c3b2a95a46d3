// Where files are searched, in which order, and which are refused.
#include "symbol/files/locate.h"

#include <catch2/catch.hpp>

#include <fstream>

#include "../fixture.h"
#include "base/hex.h"
#include "symbol/files/fetched_file.h"
#include "symbol/symbolizer.h"

namespace flamewire::symbol {
namespace {

ModuleIdentity full_build(const std::string& path) {
    ModuleIdentity module;
    module.path = path;
    module.build_id = build_id_of(fixture("full"));
    module.size = std::filesystem::file_size(fixture("full"));
    return module;
}

TEST_CASE("path maps apply at component boundaries") {
    CHECK(apply_path_map({"/opt/app", "/home/me/out"}, "/opt/app/bin/x") == "/home/me/out/bin/x");
    CHECK(apply_path_map({"/opt/app/", "/home/me/out/"}, "/opt/app/bin/x") == "/home/me/out/bin/x");
    CHECK(apply_path_map({"/opt/app", "/home/me/out"}, "/opt/app") == "/home/me/out");
    CHECK(apply_path_map({"/opt/app", "/home/me/out"}, "/opt/application/x").empty());
    CHECK(apply_path_map({"/opt/app", "/home/me/out"}, "/usr/bin/x").empty());
    CHECK(apply_path_map({"/", "/srv/root"}, "/usr/bin/x") == "/srv/root/usr/bin/x");
    CHECK(apply_path_map({"", "/srv"}, "/usr/bin/x").empty());
}

TEST_CASE("a given binary matches by build-id, whatever its name") {
    const ScratchFolder folder;
    Config config;
    config.binaries = {fixture("another"), folder.copy(fixture("full"), "renamed.elf")};
    const ModuleFiles files = locate(full_build("/usr/bin/deployed"), config);
    CHECK(files.report.file == folder.path() + "/renamed.elf");
    CHECK(files.report.quality == Quality::debug_info);
    CHECK(files.report.problem.empty());
    CHECK(files.report.found == FoundBy::given);
    CHECK_FALSE(files.report.mismatch);
}

TEST_CASE("an uploaded file for a module comes first, and has the same name as a fetched one") {
    const ScratchFolder folder;
    const ModuleIdentity module = full_build("/usr/bin/deployed");
    Config config;
    config.binaries = {folder.copy(fixture("full"), "renamed.elf")};
    config.upload_directory = folder.path() + "/given";
    CHECK(locate(module, config).report.found == FoundBy::given);
    const std::string sent = folder.copy(fixture("full"), "given/" + fetched_name(module));
    const ModuleReport report = locate(module, config).report;
    CHECK(report.file == sent);
    CHECK(report.found == FoundBy::uploaded);
    // Another build under this name is refused.
    std::filesystem::copy_file(fixture("another"), sent, std::filesystem::copy_options::overwrite_existing);
    const ModuleReport other = locate(module, config).report;
    CHECK(other.found == FoundBy::given);
    CHECK(other.mismatch);
}

TEST_CASE("a given binary of another build is refused, with both build-ids and the remedy") {
    Config config;
    config.binaries = {fixture("another")};
    const ModuleFiles files = locate(full_build("/usr/bin/program"), config);
    CHECK_FALSE(files.main);
    CHECK(files.report.quality == Quality::none);
    CHECK(files.report.mismatch);
    CHECK(files.report.found == FoundBy::nothing);
    CHECK(files.report.problem == "build-id mismatch: " + fixture("another") + " has " +
                                      to_hex(build_id_of(fixture("another"))).substr(0, 16) + ", the target runs " +
                                      to_hex(build_id_of(fixture("full"))).substr(0, 16));
    CHECK(files.report.remedy.find("--binary") != std::string::npos);
}

TEST_CASE("without a build-id, a given binary matches by name, and a found file only with the same size") {
    ModuleIdentity module;
    module.path = "/usr/bin/program";
    module.size = 17;
    Config config;
    config.binaries = {fixture("anonymous")};
    CHECK(locate(module, config).report.file == fixture("anonymous"));

    const ScratchFolder root;
    const std::string copy = root.copy(fixture("anonymous"), "usr/bin/program");
    Config sysroot;
    sysroot.sysroot = root.path();
    const ModuleReport refused = locate(module, sysroot).report;
    CHECK(refused.quality == Quality::none);
    CHECK(refused.problem.find("size mismatch: " + copy) == 0);
    module.size = std::filesystem::file_size(copy);
    CHECK(locate(module, sysroot).report.file == copy);
    CHECK(locate(module, sysroot).report.found == FoundBy::sysroot);
}

TEST_CASE("order: path map, sysroot, sysroot with and without /usr, the path itself") {
    const ScratchFolder folder;
    const std::string mapped = folder.copy(fixture("full"), "map/bin/program");
    const std::string under = folder.copy(fixture("full"), "root/bin/program");
    Config config;
    config.sysroot = folder.path() + "/root";
    config.path_maps = {{"/opt", folder.path() + "/none"}, {"/usr", folder.path() + "/map"}};
    CHECK(locate(full_build("/usr/bin/program"), config).report.file == mapped);
    config.path_maps.clear();
    const ModuleReport report = locate(full_build("/usr/bin/program"), config).report;
    CHECK(report.file == under);
    CHECK(report.tried == std::vector<std::string>{folder.path() + "/root/usr/bin/program", under});
    CHECK(locate(full_build("/bin/program"), config).report.file == under);
    config.sysroot.clear();
    CHECK(locate(full_build(mapped), config).report.file == mapped);
    CHECK(locate(full_build(mapped + " (deleted)"), config).report.file == mapped);
}

TEST_CASE("debug info by build-id, also in the sysroot") {
    const ScratchFolder folder;
    const std::string hex = to_hex(build_id_of(fixture("full")));
    const std::string debug =
        folder.copy(fixture("stripped") + ".debug",
                    "root/usr/lib/debug/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug");
    Config config;
    config.sysroot = folder.path() + "/root";
    const ModuleFiles files = locate(full_build("/usr/bin/program"), config);
    CHECK(files.report.debug_file == debug);
    CHECK(files.report.quality == Quality::debug_info);
    CHECK(files.report.problem.empty());
    // The wrong file under the right name is not used.
    const ScratchFolder wrong;
    wrong.copy(fixture("another"), ".build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug");
    Config wrong_config;
    wrong_config.debug_directories = {wrong.path()};
    CHECK(locate(full_build("/usr/bin/program"), wrong_config).report.quality == Quality::none);
}

TEST_CASE("a debug link is followed only to a file with the right checksum or build-id") {
    const ScratchFolder folder;
    ModuleIdentity module = full_build(folder.copy(fixture("stripped"), "bin/program"));
    Config config;
    config.debug_directories = {folder.path() + "/debug"};
    folder.copy(fixture("another"), "bin/program.debug");
    const ModuleReport refused = locate(module, config).report;
    CHECK(refused.debug_file.empty());
    CHECK(refused.problem.find("its checksum differs") != std::string::npos);
    const std::string good =
        folder.copy(fixture("stripped") + ".debug", "debug" + folder.path() + "/bin/program.debug");
    CHECK(locate(module, config).report.debug_file == good);

    // Without a build-id in the debug file, the checksum alone decides.
    const ScratchFolder other;
    module.path = other.copy(fixture("stripped"), "bin/program");
    const std::string link = other.copy(fixture("stripped") + ".debug", "bin/program.debug");
    CHECK(locate(module, Config{}).report.debug_file == link);
    std::ofstream(link, std::ios::app) << "x";  // still the same build-id, so still valid
    CHECK(locate(module, Config{}).report.debug_file == link);
}

// Debug files in the layouts of Yocto, Buildroot and Debian SDKs, below a sysroot. Its links refer to the target's
// root.
class Sdk {
public:
    Sdk() {
        config_.sysroot = root_.path();
        config_.debug_directories = {"/usr/lib/debug"};
    }
    void add(const std::string& build, const std::string& path) const { root_.copy(build, path); }
    void link(const std::string& target, const std::string& path) const {
        const std::filesystem::path at = root_.path() + "/" + path;
        std::filesystem::create_directories(at.parent_path());
        std::filesystem::create_symlink(target, at);
    }
    [[nodiscard]] ModuleReport find(const std::string& path) const { return locate(full_build(path), config_).report; }
    [[nodiscard]] std::string file(const std::string& path) const { return root_.path() + "/" + path; }

private:
    ScratchFolder root_;
    Config config_;
};

const std::string debug_twin = fixture("stripped") + ".debug";

TEST_CASE("debug files in .debug beside the module (Yocto), by its link and by name alone") {
    const Sdk sdk;
    sdk.add(fixture("stripped"), "opt/bin/program");
    sdk.add(debug_twin, "opt/bin/.debug/program.debug");
    CHECK(sdk.find("/opt/bin/program").debug_file == sdk.file("opt/bin/.debug/program.debug"));

    // A root file system with only debug files: no module, no link.
    const Sdk alone;
    alone.add(debug_twin, "opt/bin/.debug/program");
    const ModuleReport report = alone.find("/opt/bin/program");
    CHECK(report.debug_file == alone.file("opt/bin/.debug/program"));
    CHECK(report.quality == Quality::debug_info);
    CHECK(report.problem.empty());
}

TEST_CASE("debug files in usr/lib/debug of the sysroot, by folder and by build-id") {
    const Sdk by_folder;
    by_folder.add(fixture("stripped"), "opt/bin/program");
    by_folder.add(debug_twin, "usr/lib/debug/opt/bin/program.debug");
    CHECK(by_folder.find("/opt/bin/program").debug_file == by_folder.file("usr/lib/debug/opt/bin/program.debug"));

    const Sdk alone;
    alone.add(debug_twin, "usr/lib/debug/opt/bin/program.debug");
    CHECK(alone.find("/opt/bin/program").debug_file == alone.file("usr/lib/debug/opt/bin/program.debug"));

    // .build-id as in Buildroot and Fedora: a link with the target's absolute path.
    const std::string hex = to_hex(build_id_of(fixture("full")));
    const Sdk by_id;
    by_id.add(debug_twin, "usr/lib/debug/elsewhere/p.debug");
    by_id.link("/usr/lib/debug/elsewhere/p.debug",
               "usr/lib/debug/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug");
    CHECK(by_id.find("/opt/bin/program").debug_file == by_id.file("usr/lib/debug/elsewhere/p.debug"));
}

TEST_CASE("absolute links of a sysroot are followed inside of it") {
    const Sdk sdk;
    sdk.add(fixture("full"), "usr/lib/program-2.1");
    sdk.link("/usr/lib", "lib");
    sdk.link("/lib/program-2.1", "usr/lib/program");
    CHECK(sdk.find("/lib/program").file == sdk.file("usr/lib/program-2.1"));
    // The same path on this machine has another build, which is not even opened.
    const Sdk outside;
    const ScratchFolder host;
    outside.link(host.copy(fixture("full"), "program"), "usr/bin/program");
    CHECK(outside.find("/usr/bin/program").quality == Quality::none);
}

TEST_CASE("a debug file of another build is refused with a message") {
    const std::string hex = to_hex(build_id_of(fixture("full")));
    for (const std::string& place :
         {std::string("opt/bin/.debug/program"), std::string("usr/lib/debug/opt/bin/program.debug"),
          "usr/lib/debug/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug"}) {
        const Sdk sdk;
        sdk.add(fixture("another"), place);
        const ModuleReport report = sdk.find("/opt/bin/program");
        INFO(place);
        CHECK(report.quality == Quality::none);
        CHECK(report.debug_file.empty());
        CHECK(report.problem == "build-id mismatch: the debug file " + sdk.file(place) + " has " +
                                    to_hex(build_id_of(fixture("another"))).substr(0, 16) + ", the target runs " +
                                    hex.substr(0, 16));
    }
}

TEST_CASE("files that are not ELF are not used") {
    const ScratchFolder folder;
    std::ofstream(folder.path() + "/program") << "#!/bin/sh\n";
    ModuleIdentity module;
    module.path = folder.path() + "/program";
    CHECK(locate(module, Config{}).report.quality == Quality::none);
    module.path = folder.path();
    CHECK(locate(module, Config{}).report.quality == Quality::none);
    module.path = "relative/program";
    CHECK(locate(module, Config{}).report.tried.empty());
}

}  // namespace
}  // namespace flamewire::symbol
