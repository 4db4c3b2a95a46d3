// Warnings whose cause and remedy come from the agent's notices.
#include "views/quality_warnings.h"

#include <catch2/catch.hpp>

#include "recording.h"
#include "server/session/catalog.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::RecordingScene;
using flamewire::test::ScratchDirectory;

namespace {

// The warnings of a recording with this event, whose stacks all end in this marker, and with these notices.
std::vector<wire::Notice> warnings_of(const std::string& event, const std::string& marker,
                                      std::vector<wire::Notice> notices) {
    const ScratchDirectory data;
    const auto catalog = Catalog::open(data.path(), {}).value();
    RecordingScene scene;
    wire::Batch batch = scene.batch();
    batch.strings[2] = event;
    batch.strings.push_back(marker);
    batch.locations[1] = {0, 0, 0, 5, 0, 0};  // the outer frame
    batch.unwinds.clear();
    batch.notices = std::move(notices);
    const auto session = catalog->create(scene.id(), "demo").value();
    const wire::Frame frame = scene.frame(batch);
    session->ingest(frame.flag, frame.payload, test::arrival).value();
    const SessionInfo info = session->info();
    return session->read([&](const profile::Store& store) {
        const views::View view = views::resolve_view({}, store, session->status().start_ns()).value();
        std::vector<wire::Notice> warnings = views::quality_warnings(store, view, info.unwinding, info.notices, {});
        std::erase_if(warnings, [](const wire::Notice& warning) { return warning.code == "unnamed"; });
        return warnings;
    });
}

}  // namespace

TEST_CASE("stacks that were not copied because of the load have the remedy of that notice") {
    const wire::Notice dropped{"stack-copies",
                               "120 MB of stacks were copied per second. From now on, stacks of context switches come "
                               "from frame pointers.",
                               "use a lower --frequency or a smaller --stack-size"};
    const auto off_cpu = warnings_of("off-cpu", "[incomplete]", {dropped});
    REQUIRE(off_cpu.size() == 1);
    CHECK(off_cpu[0].text == "100.00% has incomplete call chains ([incomplete]): " + dropped.text);
    CHECK(off_cpu[0].remedy == dropped.remedy);

    // Stacks of other events are still copied, also after the agent reduced the copy size.
    const wire::Notice less{"stack-copies", "9 samples were lost. From now on, the agent copies 4 KiB of each stack.",
                            ""};
    for (const auto& [event, notice] : {std::pair{"cycles", dropped}, std::pair{"off-cpu", less}}) {
        const auto others = warnings_of(event, "[incomplete]", {notice});
        REQUIRE(others.size() == 1);
        CHECK(others[0].text.contains("no unwind table or frame pointer led to the caller"));
    }
}

TEST_CASE("missing samples have the remedy that the agent reported") {
    const auto remedy = [](std::vector<wire::Notice> notices) {
        const auto warnings = warnings_of("cycles", "[not sampled: short-lived threads]", std::move(notices));
        REQUIRE(warnings.size() == 1);
        return warnings[0].remedy;
    };
    CHECK(remedy({{"short-lived-threads", "…", "run the agent as root"}}) == "run the agent as root");
    for (const std::vector<wire::Notice>& none : {std::vector<wire::Notice>{}, {{"short-lived-threads", "…", ""}}})
        CHECK(remedy(none) == "record for a longer time, or with a higher -F");
}
