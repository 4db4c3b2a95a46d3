// Where files are looked for, in which order, and which are refused.
#include "symbol/locate.h"

#include <catch2/catch.hpp>

#include <fstream>

#include "base/hex.h"
#include "fixture.h"

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

TEST_CASE("a given binary serves by build-id, whatever its name") {
    const ScratchFolder folder;
    Config config;
    config.binaries = {fixture("another"), folder.copy(fixture("full"), "renamed.elf")};
    const ModuleFiles files = locate(full_build("/usr/bin/deployed"), config);
    CHECK(files.report.file == folder.path() + "/renamed.elf");
    CHECK(files.report.quality == Quality::debug_info);
    CHECK(files.report.problem.empty());
}

TEST_CASE("a given binary of another build is refused, with both build-ids and the remedy") {
    Config config;
    config.binaries = {fixture("another")};
    const ModuleFiles files = locate(full_build("/usr/bin/program"), config);
    CHECK_FALSE(files.main);
    CHECK(files.report.quality == Quality::none);
    CHECK(files.report.problem == "build-id mismatch: " + fixture("another") + " has " +
                                      to_hex(build_id_of(fixture("another"))).substr(0, 16) + ", the target runs " +
                                      to_hex(build_id_of(fixture("full"))).substr(0, 16));
    CHECK(files.report.remedy.find("--binary") != std::string::npos);
}

TEST_CASE("without a build-id a given binary serves by name, a found file only with the same size") {
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
    // The wrong file under the right name is not believed.
    const ScratchFolder liar;
    liar.copy(fixture("another"), ".build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug");
    Config lying;
    lying.debug_directories = {liar.path()};
    CHECK(locate(full_build("/usr/bin/program"), lying).report.quality == Quality::none);
}

TEST_CASE("a debug link is followed only to the file whose checksum or build-id it is") {
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
    std::ofstream(link, std::ios::app) << "x";  // still the same build-id, so still good
    CHECK(locate(module, Config{}).report.debug_file == link);
}

TEST_CASE("what is not ELF is not taken") {
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
