#include "profile/formats/import.h"

#include <algorithm>
#include <array>

#include "profile/formats/chrome_import.h"
#include "profile/formats/collapsed_import.h"
#include "profile/formats/firefox.h"
#include "profile/formats/perf_data/perf_data_import.h"
#include "profile/formats/perf_script_import.h"
#include "profile/formats/pprof_import.h"
#include "profile/formats/speedscope.h"

namespace flamewire::profile {
namespace {

// From formats with a magic number to formats that are only recognized by their look.
constexpr std::array formats{
    ImportFormat{"perf.data", "perf.data files", &perf_data::recognises, &perf_data::import_perf_data},
    ImportFormat{"pprof", "pprof profiles", &recognises_pprof, &import_pprof},
    ImportFormat{"speedscope", "speedscope profiles", &recognises_speedscope, &import_speedscope},
    ImportFormat{"firefox", "profiles of the Firefox Profiler", &recognises_firefox, &import_firefox},
    ImportFormat{"chrome", "CPU profiles and traces of Chrome", &recognises_chrome, &import_chrome},
    ImportFormat{"perf-script", "the text of perf script", &recognises_perf_script, &import_perf_script},
    ImportFormat{"collapsed", "folded stacks (\"outer;inner count\")", &CollapsedImport::recognises, &import_collapsed},
};

}  // namespace

std::span<const ImportFormat> import_formats() { return formats; }

const ImportFormat* recognise_import(std::string_view beginning) {
    const auto found =
        std::ranges::find_if(formats, [&](const ImportFormat& one) { return one.recognises(beginning); });
    return found == formats.end() ? nullptr : &*found;
}

}  // namespace flamewire::profile
