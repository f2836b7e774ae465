// SQLite files in the shapes that versions of Nsight Systems export, made by our own statements.
#pragma once

#include <filesystem>
#include <string>

#include <SQLiteCpp/SQLiteCpp.h>

namespace decodelab::testing {

inline std::string global_id(long process, long thread) {
  // Hardware and machine ids stand above the process.
  return std::to_string((std::int64_t{1} << 56) | (std::int64_t{2} << 48) | (process << 24) | thread);
}

inline void execute(const std::filesystem::path& path, const std::string& statements) {
  SQLite::Database database(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  database.exec(statements);
}

/// Schema 3.25.0: two processes that use the same correlation ids, a graph with nodes, an NVTX step, a wait, an
/// overhead.
inline void make_nsys_3_25(const std::filesystem::path& path) {
  execute(path, R"sql(
CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION','2026.2.1.210'),('EXPORT_SCHEMA_VERSION','3.25.0');
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1790000000000000000,'','');
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT, totalMemory INTEGER, memoryBandwidth INTEGER, smCount INTEGER,
  cuDevice INTEGER, computeMajor INTEGER, computeMinor INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0,0,'NVIDIA H100',85000000000,3350000000000,132,0,9,0);
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1,'void gemm<float>()'),(2,'gemm'),(3,'cudaLaunchKernel_v7000'),(4,'cudaGraphLaunch_v10000'),
  (5,'cudaStreamSynchronize_v3020'),(6,'Command buffer full'),(7,'step'),(8,'attention'),(9,'softmax');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
  greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
  shortName INTEGER NOT NULL, mangledName INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
  gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
  dynamicSharedMemory INTEGER NOT NULL, graphNodeId INTEGER, graphId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL,
  eventId INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_OVERHEAD (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER NOT NULL, overheadType INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER,
  text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER);
)sql"
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES "
                "(1000,1100,0," +
                    global_id(100, 101) + ",1,3,0,NULL),(1200,1300,0," + global_id(100, 101) +
                    ",2,4,0,NULL),"
                    "(1400,1900,0," +
                    global_id(100, 101) + ",3,5,0,NULL),(911000,911100,0," + global_id(200, 201) +
                    ",1,3,0,NULL);"
                    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
                    "(1150,1250,0,1,NULL,7,1," +
                    global_id(100, 0) +
                    ",1,2,NULL,32,132,1,1,128,1,1,1024,2048,NULL,NULL),"
                    "(1350,1450,0,1,NULL,7,2," +
                    global_id(100, 0) +
                    ",9,9,NULL,16,1,1,1,32,1,1,0,0,51,5),"
                    "(1460,1500,0,1,NULL,7,2," +
                    global_id(100, 0) +
                    ",9,9,NULL,16,1,1,1,32,1,1,0,0,52,5),"
                    "(0,0,0,1,NULL,7,9," +
                    global_id(100, 0) +
                    ",9,9,NULL,16,1,1,1,32,1,1,0,0,NULL,NULL),"
                    "(911200,911300,0,1,NULL,7,1," +
                    global_id(200, 0) +
                    ",1,2,NULL,32,132,1,1,128,1,1,0,0,NULL,NULL);"
                    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1600,1700,0,1,7,8," +
                    global_id(100, 0) +
                    ",4096,2);"
                    "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (1410,1890,0,1,7,3," +
                    global_id(100, 0) +
                    ",3,4294967295);"
                    "INSERT INTO CUPTI_ACTIVITY_KIND_OVERHEAD VALUES (1800,1850,2," +
                    global_id(100, 101) +
                    ",0,6,8);"
                    "INSERT INTO NVTX_EVENTS VALUES (0,NULL,75,NULL,NULL,NULL,'decode'," +
                    global_id(100, 101) +
                    ",NULL,NULL,1,NULL),"
                    "(900,2000,59,NULL,NULL,NULL,NULL," +
                    global_id(100, 101) +
                    ",NULL,7,1,12),"
                    "(950,1350,59,NULL,NULL,NULL,'attention'," +
                    global_id(100, 101) +
                    ",NULL,NULL,1,NULL),"
                    "(960,970,59,NULL,NULL,NULL,'step 13'," +
                    global_id(100, 102) + ",NULL,NULL,0,NULL);");
}

/// An older shape: no globalPid of kernels, no graph columns, no textId, names only as short ones.
inline void make_nsys_old(const std::filesystem::path& path, int processes) {
  std::string rows = "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1000,1100," + global_id(100, 101) + ",1,3)";
  if (processes > 1) {
    rows += ",(5000,5100," + global_id(200, 201) + ",1,3)";
  }
  execute(path, R"sql(
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (2,'gemm'),(3,'cudaLaunchKernel');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER,
  shortName INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1150,1250,0,7,1,2);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER);
)sql" + rows + ";INSERT INTO NVTX_EVENTS VALUES (900,2000,59,'ProfilerStep#5'," +
                    global_id(100, 101) + ");");
}

/// --cuda-graph-trace=graph, the default of nsys: replays are rows, kernels are not there.
inline void make_nsys_graph_only(const std::filesystem::path& path) {
  execute(path, R"sql(
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (4,'cudaGraphLaunch_v10000');
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, graphId INTEGER NOT NULL,
  graphExecId INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
)sql"
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1000,1100,0," +
                    global_id(100, 101) +
                    ",1,4,0,NULL);"
                    "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1150,1950,0,1,7,1," +
                    global_id(100, 0) + ",5,6);");
}

}  // namespace decodelab::testing
