// Modules of a recording: facts about their files, and files that users provide for them.
#include "server/http/module_answers.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/hex.h"
#include "base/json_writer.h"
#include "elf/elf_file.h"
#include "recording.h"
#include "server/http/upload_answers.h"
#include "server/session/catalog.h"
#include "wire/control.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::RecordingScene;
using flamewire::test::ScratchDirectory;

namespace {

std::string own_build_id() {
    const std::string file = read_file("/proc/self/exe", std::size_t{1} << 30).value();
    const elf::ByteSource source = elf::source_of_bytes(as_bytes_view(file));
    return elf::read_build_id(source, elf::read_header(source).value()).value();
}

// A session with one module: this program, or a file without a build-id.
std::shared_ptr<Session> session_with(Catalog& catalog, const std::string& build_id) {
    RecordingScene scene;
    wire::Batch batch = scene.batch();
    REQUIRE(batch.modules.size() == 1);
    batch.modules[0].build_id = build_id;
    auto session = catalog.create(scene.id(), "demo").value();
    const wire::Frame frame = scene.frame(batch);
    session->ingest(frame.flag, frame.payload, 1'800'000'000'000'000'000).value();
    return session;
}

std::string path_in(const Session& session) {
    return session.read([](const profile::Store& store) { return store.modules()[1].identity.path; });
}

Request give(const Session& session, const std::string& build_id, const std::string& more) {
    Request request;
    request.method = "POST";
    request.path = "/api/modules";
    request.body = "{\"path\":\"" + path_in(session) + "\",\"build_id\":\"" + to_hex(build_id) + "\"" + more + "}";
    return request;
}

}  // namespace

TEST_CASE("a provided file must be of the module's build") {
    const ScratchDirectory data;
    const auto catalog = Catalog::open(data.path(), {}).value();
    UploadStore uploads(data.path() + "/uploads");
    const auto session = session_with(*catalog, own_build_id());
    const auto given = given_file(*session, give(*session, own_build_id(), ",\"file\":\"/proc/self/exe\""), uploads);
    REQUIRE(given);
    CHECK(given->path == "/proc/self/exe");
    CHECK(given->module.build_id == own_build_id());

    const auto refused = [&](const std::string& build_id, const std::string& more) {
        const auto answer = given_file(*session, give(*session, build_id, more), uploads);
        REQUIRE_FALSE(answer);
        return answer.error().message;
    };
    CHECK(refused(own_build_id(), ",\"file\":\"/no/such\"").find("not a file") != std::string::npos);
    CHECK(refused(own_build_id(), ",\"file\":\"/etc/passwd\"").find("not an ELF file") != std::string::npos);
    CHECK(refused(own_build_id(), "").find("either file") != std::string::npos);
    CHECK(refused(own_build_id(), ",\"file\":\"/a\",\"upload\":\"file-0001\"").find("either file") !=
          std::string::npos);
    CHECK(refused("zz", ",\"file\":\"/proc/self/exe\"").find("has no module") != std::string::npos);
    CHECK(refused(own_build_id(), ",\"upload\":\"file-0001\"").find("no upload") != std::string::npos);
    REQUIRE(uploads.add("file-0001", 0, 8, "abcd"));
    CHECK(refused(own_build_id(), ",\"upload\":\"file-0001\"").find("send the rest") != std::string::npos);
    REQUIRE(uploads.add("file-0001", 4, 8, "efgh"));
    CHECK(refused(own_build_id(), ",\"upload\":\"file-0001\"").find("the uploaded file is not an ELF file") == 0);

    RecordingScene other(0xCD);
    wire::Batch batch = other.batch();
    batch.modules[0].build_id = "another build";
    auto foreign = catalog->create(other.id(), "other").value();
    const wire::Frame frame = other.frame(batch);
    foreign->ingest(frame.flag, frame.payload, 1'800'000'000'000'000'000).value();
    const auto mismatch =
        given_file(*foreign, give(*foreign, "another build", ",\"file\":\"/proc/self/exe\""), uploads);
    REQUIRE_FALSE(mismatch);
    CHECK(mismatch.error().message.find("build-id mismatch") == 0);
    CHECK(mismatch.error().message.find(to_hex(own_build_id()).substr(0, 16)) != std::string::npos);
    CHECK(mismatch.error().message.find(to_hex(std::string_view("another build")).substr(0, 16)) != std::string::npos);
}

TEST_CASE("for a module without build-id, a file on the server must have its name") {
    const ScratchDirectory data;
    const auto catalog = Catalog::open(data.path(), {}).value();
    UploadStore uploads(data.path() + "/uploads");
    const auto session = session_with(*catalog, "");
    const std::string name = std::filesystem::path(path_in(*session)).filename().string();
    const auto wrong = given_file(*session, give(*session, "", ",\"file\":\"/proc/self/exe\""), uploads);
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().message.find("called " + name) != std::string::npos);
    const std::string named = data.path() + "/" + name;
    std::filesystem::copy_file("/proc/self/exe", named);
    CHECK(given_file(*session, give(*session, "", ",\"file\":\"" + named + "\""), uploads).value().path == named);
}

TEST_CASE("a module's state is the value that docs/openapi.yaml defines") {
    using symbol::ModuleReport;
    using symbol::Quality;
    profile::Module module;
    const auto state = [&](const ModuleReport* report, const ModuleFetch* debug_fetch = nullptr) {
        JsonWriter json;
        write_module(json, module, report, nullptr, debug_fetch, nullptr);
        return wire::text_member(wire::parse_object(json.take()).value(), "state");
    };
    const auto of = [&](Quality quality, const char* file = "", bool mismatch = false, bool kept = false,
                        const ModuleFetch* debug_fetch = nullptr) {
        ModuleReport report;
        report.quality = quality;
        report.file = file;
        report.mismatch = mismatch;
        report.from_cache = kept;
        return state(&report, debug_fetch);
    };
    CHECK(state(nullptr) == "pending");
    CHECK(of(Quality::debug_info, "/bin/a") == "debug_info");
    CHECK(of(Quality::go_table, "/bin/a") == "go_table");
    CHECK(of(Quality::symbols, "/bin/a") == "symbols");
    CHECK(of(Quality::linker_map) == "linker_map");
    CHECK(of(Quality::dynamic_symbols) == "stripped");  // exported names only ...
    CHECK(of(Quality::none, "/bin/a") == "stripped");   // ... or none
    CHECK(of(Quality::none, "", true) == "mismatch");
    CHECK(of(Quality::none) == "not_found");
    CHECK(of(Quality::debug_info, "/bin/a", false, true) == "kept");

    ModuleFetch fetch;
    for (const auto& [step, expected] : {std::pair{ModuleFetch::State::asked, "fetching"},
                                         {ModuleFetch::State::arriving, "fetching"},
                                         {ModuleFetch::State::arrived, "symbols"},
                                         {ModuleFetch::State::refused, "symbols"},
                                         {ModuleFetch::State::interrupted, "symbols"}}) {
        fetch.state = step;
        CHECK(of(Quality::symbols, "/bin/a", false, false, &fetch) == expected);
        CHECK(of(Quality::debug_info, "/bin/a", false, false, &fetch) == "debug_info");
    }

    module.identity.kind = symbol::ModuleKind::jit;
    CHECK(state(nullptr) == "recorded");
}
