#include "server/options.h"

#include <catch2/catch.hpp>

using namespace flamewire::server;

namespace {

ParsedOptions parse(std::vector<const char*> words) {
    words.insert(words.begin(), "flamewire-server");
    return parse_options(static_cast<int>(words.size()), words.data());
}

}  // namespace

TEST_CASE("defaults are the documented ones") {
    const auto parsed = parse({});
    REQUIRE(parsed.message.empty());
    CHECK(parsed.options.port == 9999);
    CHECK(parsed.options.http_port == 8080);
    CHECK(parsed.options.bind == "0.0.0.0");
    CHECK(parsed.options.http_bind == "127.0.0.1");
    CHECK(parsed.options.settings.source_dir == ".");
    CHECK(parsed.options.settings.inlines);
    CHECK(parsed.options.fetch_modules);
    CHECK(parsed.options.fetch_cap_mib == 64);
    CHECK(parsed.options.max_samples == 500'000);
    CHECK_FALSE(parsed.options.keep.any());
    CHECK(parsed.options.tags.empty());
}

TEST_CASE("options reach their values") {
    const auto parsed =
        parse({"--port", "0", "--agent", "board:1", "--agent", "[::1]", "--path-map", "/a=/b", "--no-inline",
               "--addr2line", "x", "--readelf", "y", "--bind", "0.0.0.0", "--data-dir", "/d"});
    REQUIRE(parsed.message.empty());
    CHECK(parsed.options.port == 0);
    CHECK(parsed.options.agents == std::vector<AgentAddress>{{"board", 1}, {"::1", 9999}});
    CHECK(parsed.options.settings.path_map == std::vector<std::string>{"/a=/b"});
    CHECK_FALSE(parsed.options.settings.inlines);
    CHECK(parsed.options.remarks.size() == 2);
    CHECK(parsed.options.data_dir == "/d");
    CHECK(parsed.options.settings.module_directory == "/d/modules");
    CHECK_FALSE(parse({"--fetch-modules", "off"}).options.fetch_modules);
    CHECK(parse({"--fetch-cap", "7"}).options.fetch_cap_mib == 7);
    CHECK(parse({"--insecure"}).options.insecure);
    using Kind = PairingAction::Kind;
    CHECK(parse({}).options.pairing.kind == Kind::none);
    CHECK(parse({"--list-keys"}).options.pairing.kind == Kind::list);
    CHECK(parse({"--new-key"}).options.pairing.kind == Kind::make);
    CHECK(parse({"--withdraw-key", "ab"}).options.pairing.argument == "ab");
    CHECK(parse({"--renew-key", "ab"}).options.pairing.kind == PairingAction::Kind::renew);
    CHECK(parse({"--renew-key", "ab", "--new-key"}).exit_code == 2);
    CHECK(parse({"--pair-agent", "board"}).options.pairing.argument == "board:9999");
    CHECK(parse({"--new-key", "--list-keys"}).exit_code == 2);
    CHECK(parse({"--pair-agent", ":1"}).exit_code == 2);
}

TEST_CASE("tags and retention rules") {
    const auto parsed = parse({"--tag", "lab=7", "--tag", "board=imx8 rev b", "--tag", "lab=8", "--keep-count", "20",
                               "--keep-days", "30", "--keep-size", "5G"});
    REQUIRE(parsed.message.empty());
    CHECK(parsed.options.tags == Tags{{"lab", "8"}, {"board", "imx8 rev b"}});
    CHECK(parsed.options.keep.count == 20);
    CHECK(parsed.options.keep.days == 30);
    CHECK(parsed.options.keep.size_bytes == std::uint64_t{5} << 30);
    for (const std::vector<const char*>& words : std::vector<std::vector<const char*>>{{"--tag", "lab"},
                                                                                       {"--tag", "a b=c"},
                                                                                       {"--keep-count", "0"},
                                                                                       {"--keep-count", "-1"},
                                                                                       {"--keep-days", "x"},
                                                                                       {"--keep-size", "5X"},
                                                                                       {"--keep-size", "0"}})
        CHECK(parse(words).exit_code == 2);
}

TEST_CASE("mistakes are reported in one sentence, with exit code 2") {
    for (const std::vector<const char*>& words : std::vector<std::vector<const char*>>{{"--port", "70000"},
                                                                                       {"--port", "x"},
                                                                                       {"--no-such"},
                                                                                       {"stray"},
                                                                                       {"--agent", ":5"},
                                                                                       {"--agent", "a:0"},
                                                                                       {"--path-map", "nonsense"},
                                                                                       {"--source-dir", "/no/such/dir"},
                                                                                       {"--binary", "/no/such/file"},
                                                                                       {"--sysroot", "/no/such"},
                                                                                       {"--map", "/no/such"},
                                                                                       {"--map", "app=/no/such"},
                                                                                       {"--map", "/proc/self/status"},
                                                                                       {"--toolchain-prefix"},
                                                                                       {"--fetch-modules", "maybe"},
                                                                                       {"--fetch-cap", "0"},
                                                                                       {"--max-samples", "5"},
                                                                                       {"--browse-root", "/no/such"},
                                                                                       {"--port"}}) {
        const auto parsed = parse(words);
        INFO(words.front());
        CHECK(parsed.exit_code == 2);
        CHECK(std::count(parsed.message.begin(), parsed.message.end(), '\n') == 1);
    }
    CHECK(parse({"--help"}).exit_code == 0);
    CHECK(parse({"--version"}).message == "flamewire-server " FLAMEWIRE_VERSION "\n");
}

TEST_CASE("the page may list the folders of files, the given roots, or nothing") {
    const auto usual =
        parse({"--source-dir", "/usr", "--sysroot", "/lib", "--binary", "/proc/self/exe"}).options.browse_roots;
    for (const char* root : {"/usr", "/lib", "/proc/self"})
        CHECK(std::find(usual.begin(), usual.end(), root) != usual.end());
    CHECK(parse({"--browse-root", "/usr", "--browse-root", "/lib"}).options.browse_roots ==
          std::vector<std::string>{"/usr", "/lib"});
    CHECK(parse({"--browse-root", "none"}).options.browse_roots.empty());
}

TEST_CASE("a page without a token is only for this machine") {
    CHECK_FALSE(parse({}).options.http_open);
    CHECK(parse({"--http-open"}).options.http_open);
    CHECK(parse({"--http-open", "--http-bind", "127.0.0.2"}).options.http_open);
    CHECK(parse({"--http-open", "--http-bind", "::1"}).options.http_open);
    for (const std::vector<const char*>& words :
         std::vector<std::vector<const char*>>{{"--http-open", "--http-bind", "0.0.0.0"},
                                               {"--http-open", "--http-bind", "::"},
                                               {"--http-open", "--http-bind", "192.0.2.1"},
                                               {"--http-open", "--http-bind", "::ffff:192.0.2.1"},
                                               {"--http-open", "--http-bind", "nonsense"},
                                               {"--http-open", "--http-token-file", "/dev/null"}}) {
        const auto parsed = parse(words);
        INFO(words.back());
        CHECK(parsed.exit_code == 2);
        CHECK(parsed.message.starts_with("flamewire-server: --http-open "));
        CHECK(std::count(parsed.message.begin(), parsed.message.end(), '\n') == 1);
    }
}

TEST_CASE("the page's folder must be a directory") {
    CHECK(parse({}).options.web_dir.empty());
    CHECK(parse({"--web-dir", "/"}).options.web_dir == "/");
    const auto parsed = parse({"--web-dir", "/dev/null"});
    CHECK(parsed.exit_code == 2);
    CHECK(parsed.message.find("--web-dir /dev/null is not a directory") != std::string::npos);
}
