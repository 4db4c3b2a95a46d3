// Arbitrary bytes as health frames, one per line: what a session keeps of them must be valid JSON, and so must all
// answers that contain it.
#include <spdlog/spdlog.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "../unit/server/desk.h"
#include "wire/control.h"

using namespace flamewire;
using namespace flamewire::server;

namespace {

// Many inputs share a session, because creating one takes longer than all of these inputs.
constexpr int inputs_of_session = 50;

struct Scene {
    flamewire::test::Desk desk{""};
    flamewire::test::RecordingScene recorded;
    std::shared_ptr<Session> session = desk.record(recorded);
    int inputs = 0;
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
    spdlog::set_level(spdlog::level::off);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static std::unique_ptr<Scene> scene;
    if (!scene || scene->inputs++ == inputs_of_session) scene = std::make_unique<Scene>();
    std::string_view lines(reinterpret_cast<const char*>(data), size);
    while (!lines.empty()) {
        const std::size_t end = lines.find('\n');
        (void)scene->session->ingest(wire::Flag::metrics, std::string(lines.substr(0, end)), flamewire::test::arrival);
        lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
    }
    for (const char* target :
         {"/api/metrics/current", "/api/metrics/history?type=system", "/api/metrics/history?type=process&slices=3",
          "/api/metrics/history?type=threads", "/api/thread-summary", "/api/thread-states"}) {
        const Answer answer = scene->desk.api.answer(flamewire::test::get(target));
        if (!wire::parse_object(R"({"answer":)" + answer.body + "}")) std::abort();
    }
    return 0;
}
