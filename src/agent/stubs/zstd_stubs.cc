// Removes zstd's search strategies of levels 3 and up, and code for its advanced parameters, from the static agent.
// This is 280 KB of code that level 1 (wire/frame.cc) never reaches but zstd's table of strategies refers to. The stubs
// are weak: the linker finds the names defined and does not fetch those members of libzstd.a. If another version of
// zstd needs a member for a name that is missing here, the member's definitions win. Calling a stub is a bug in the
// agent and aborts the program.
#include <cstddef>
#include <cstdlib>

// zstd's own names.
// NOLINTBEGIN(readability-identifier-naming)
#define FLAMEWIRE_NEVER_CALLED(name)      \
    extern "C" [[gnu::weak]] void name(); \
    void name() { std::abort(); }
#define FLAMEWIRE_NEVER_CALLED_WITH_DICTIONARIES(name) \
    FLAMEWIRE_NEVER_CALLED(name)                       \
    FLAMEWIRE_NEVER_CALLED(name##_dictMatchState)      \
    FLAMEWIRE_NEVER_CALLED(name##_extDict)
#define FLAMEWIRE_NEVER_CALLED_WITH_ROWS(name)         \
    FLAMEWIRE_NEVER_CALLED_WITH_DICTIONARIES(name)     \
    FLAMEWIRE_NEVER_CALLED(name##_row)                 \
    FLAMEWIRE_NEVER_CALLED(name##_dictMatchState_row)  \
    FLAMEWIRE_NEVER_CALLED(name##_extDict_row)         \
    FLAMEWIRE_NEVER_CALLED(name##_dedicatedDictSearch) \
    FLAMEWIRE_NEVER_CALLED(name##_dedicatedDictSearch_row)

// zstd_double_fast.o
FLAMEWIRE_NEVER_CALLED_WITH_DICTIONARIES(ZSTD_compressBlock_doubleFast)
FLAMEWIRE_NEVER_CALLED(ZSTD_fillDoubleHashTable)
// zstd_lazy.o
FLAMEWIRE_NEVER_CALLED_WITH_ROWS(ZSTD_compressBlock_greedy)
FLAMEWIRE_NEVER_CALLED_WITH_ROWS(ZSTD_compressBlock_lazy)
FLAMEWIRE_NEVER_CALLED_WITH_ROWS(ZSTD_compressBlock_lazy2)
FLAMEWIRE_NEVER_CALLED_WITH_DICTIONARIES(ZSTD_compressBlock_btlazy2)
FLAMEWIRE_NEVER_CALLED(ZSTD_dedicatedDictSearch_lazy_loadDictionary)
FLAMEWIRE_NEVER_CALLED(ZSTD_insertAndFindFirstIndex)
FLAMEWIRE_NEVER_CALLED(ZSTD_row_update)
// zstd_opt.o
FLAMEWIRE_NEVER_CALLED_WITH_DICTIONARIES(ZSTD_compressBlock_btopt)
FLAMEWIRE_NEVER_CALLED_WITH_DICTIONARIES(ZSTD_compressBlock_btultra)
FLAMEWIRE_NEVER_CALLED(ZSTD_compressBlock_btultra2)
FLAMEWIRE_NEVER_CALLED(ZSTD_updateTree)
// zstd_ldm.o, zstd_compress_superblock.o. zstd always queries the memory size of long-distance matching: 0 here.
#define FLAMEWIRE_NONE_NEEDED(name)              \
    extern "C" [[gnu::weak]] std::size_t name(); \
    std::size_t name() { return 0; }
FLAMEWIRE_NONE_NEEDED(ZSTD_ldm_getTableSize)
FLAMEWIRE_NONE_NEEDED(ZSTD_ldm_getMaxNbSeq)
FLAMEWIRE_NEVER_CALLED(ZSTD_ldm_adjustParameters)
FLAMEWIRE_NEVER_CALLED(ZSTD_ldm_blockCompress)
FLAMEWIRE_NEVER_CALLED(ZSTD_ldm_fillHashTable)
FLAMEWIRE_NEVER_CALLED(ZSTD_ldm_generateSequences)
FLAMEWIRE_NEVER_CALLED(ZSTD_ldm_skipRawSeqStoreBytes)
FLAMEWIRE_NEVER_CALLED(ZSTD_compressSuperBlock)
// zstd calls this at every level for blocks below 7 bytes. Without long-distance matching there is nothing to skip.
extern "C" [[gnu::weak]] void ZSTD_ldm_skipSequences(void*, std::size_t, unsigned);
void ZSTD_ldm_skipSequences(void*, std::size_t, unsigned) {}

// zstd_v05.o, zstd_v06.o, zstd_v07.o. The size of an old frame is queried first (ZSTD_getFrameContentSize). The result
// "not enough bytes" makes it unknown, which wire::decompress rejects, so no input reaches the functions below.
#define FLAMEWIRE_OLD_FORMAT(version)                                                                     \
    extern "C" [[gnu::weak]] std::size_t ZSTD##version##_getFrameParams(void*, const void*, std::size_t); \
    std::size_t ZSTD##version##_getFrameParams(void*, const void*, std::size_t) { return 1; }             \
    FLAMEWIRE_NEVER_CALLED(ZSTD##version##_createDCtx)                                                    \
    FLAMEWIRE_NEVER_CALLED(ZSTD##version##_freeDCtx)                                                      \
    FLAMEWIRE_NEVER_CALLED(ZSTD##version##_decompress_usingDict)                                          \
    FLAMEWIRE_NEVER_CALLED(ZSTD##version##_findFrameSizeInfoLegacy)                                       \
    FLAMEWIRE_NEVER_CALLED(ZBUFF##version##_createDCtx)                                                   \
    FLAMEWIRE_NEVER_CALLED(ZBUFF##version##_freeDCtx)                                                     \
    FLAMEWIRE_NEVER_CALLED(ZBUFF##version##_decompressInitDictionary)                                     \
    FLAMEWIRE_NEVER_CALLED(ZBUFF##version##_decompressContinue)
FLAMEWIRE_OLD_FORMAT(v05)
FLAMEWIRE_OLD_FORMAT(v06)
FLAMEWIRE_OLD_FORMAT(v07)
// NOLINTEND(readability-identifier-naming)
