#include "server/http/assets.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "recording.h"

using namespace flamewire::server;
using flamewire::test::ScratchDirectory;
namespace fs = std::filesystem;

namespace {

// A folder with a page, and files next to the folder that no request may reach.
struct Page {
    ScratchDirectory scratch;
    std::string folder = scratch.path() + "/dist";

    Page() {
        write("index.html", "<title>page</title>");
        write("app.js", "run();");
        write("app.css", "a {}");
        write("favicon.svg", "<svg/>");
        write("notes.txt", "notes");
        write(".hidden.js", "hidden");
        write("sub/inner.js", "inner");
        write("../secret.js", "secret");
        fs::create_symlink("../secret.js", folder + "/link.js");
        fs::create_directory(folder + "/folder.js");
    }

    void write(const std::string& name, const std::string& text) const {
        const fs::path path = fs::path(folder) / name;
        fs::create_directories(folder);
        fs::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << text;
    }
};

}  // namespace

TEST_CASE("web folder: files have the same types as in the bundle") {
    const Page page;
    const auto served = [&](const char* path) {
        const Answer answer = folder_answer(page.folder, path);
        REQUIRE(answer.status == 200);
        CHECK(answer.headers == decltype(answer.headers){{"Cache-Control", "no-cache"}});
        return answer.content_type + " " + answer.body;
    };
    CHECK(served("/app.js") == "text/javascript; charset=utf-8 run();");
    CHECK(served("/app.css") == "text/css; charset=utf-8 a {}");
    CHECK(served("/favicon.svg") == "image/svg+xml <svg/>");
    CHECK(served("/index.html") == "text/html; charset=utf-8 <title>page</title>");
    // Paths of the page's views return the page.
    CHECK(served("/") == "text/html; charset=utf-8 <title>page</title>");
    CHECK(served("/sessions") == "text/html; charset=utf-8 <title>page</title>");
    // A changed file is served at once.
    page.write("app.js", "again();");
    CHECK(served("/app.js") == "text/javascript; charset=utf-8 again();");
}

TEST_CASE("web folder: only regular files directly in the folder are served") {
    const Page page;
    for (const char* path :
         {"/missing.js", "/../secret.js", "/..", "/../dist/app.js", "//../secret.js", "/sub/inner.js", "/sub/../app.js",
          "/.hidden.js", "/link.js", "/folder.js", "/notes.txt", "/app.js/", "/..\\secret.js", "/app.js\n"}) {
        INFO(path);
        const Answer answer = folder_answer(page.folder, path);
        CHECK(answer.status == 404);
        CHECK(answer.body.find("secret") == std::string::npos);
    }
    CHECK(folder_answer(page.folder, std::string("/app.js\0", 8)).status == 404);
    CHECK(folder_answer(page.folder + "/missing", "/").status == 404);
}

TEST_CASE("web folder: large files are refused without reading them") {
    const Page page;
    fs::resize_file(page.folder + "/app.js", max_asset_bytes);
    CHECK(folder_answer(page.folder, "/app.js").status == 200);
    fs::resize_file(page.folder + "/app.js", max_asset_bytes + 1);
    CHECK(folder_answer(page.folder, "/app.js").status == 413);
}
